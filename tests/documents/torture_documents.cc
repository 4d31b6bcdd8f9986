// The fault run of the document platform, larger and with other faults with each seed:
// `./dev torture documents`.
//
//   torture_documents [seed=N] [minutes=N] [documents=N] [on=files|servers|both]
//
// Rounds with the next seeds follow until one fails or the time is over; the first is always whole.
// Of both backends, odd seeds run on files and even ones on servers.

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fault_run.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr int kCrashing = 3;
constexpr int kEverySeconds = 12;  // a fault that is no plain kill
constexpr int kLongestSeconds = 300;

struct Settings {
  int seed = 1;
  int minutes = 10;
  int documents = 2'000;
  std::string on = "both";
};

Settings settings_of(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, int*> numbers{
      {"seed", &settings.seed}, {"minutes", &settings.minutes}, {"documents", &settings.documents}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto at = word.find('=');
    const std::string name = word.substr(0, at);
    const auto found = numbers.find(name);
    if (at == std::string::npos || (found == numbers.end() && name != "on")) {
      throw std::runtime_error("unknown: " + word);
    }
    if (name == "on") {
      settings.on = word.substr(at + 1);
    } else {
      *found->second = std::stoi(word.substr(at + 1));
    }
  }
  if (settings.on != "both" && settings.on != "files" && settings.on != "servers") {
    throw std::runtime_error("on=files, on=servers or on=both");
  }
  return settings;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct Fault {
  std::string name;
  std::function<std::string(FaultRun&)> strike;  // what more there is to say of it
};

class Torture {
 public:
  explicit Torture(Settings settings) : settings_(std::move(settings)) {}

  // Whether nothing was wrong.
  bool round(int seed) {
    const bool files = settings_.on == "files" || (settings_.on == "both" && seed % 2 != 0);
    say("seed " + std::to_string(seed) + " on " + (files ? "files" : "servers"));
    if (!files && !server_) {
      server_.emplace(PostgresOptions{.settings = {{"max_connections", "400"}}});
      rabbit_ = std::make_unique<RabbitServer>();
    }
    if (!files) empty_queues(*rabbit_);
    Platform platform(files ? FaultRun::options()
                            : FaultRun::options(server_->url(), rabbit_->url()));
    FaultRun run(platform, static_cast<std::uint64_t>(seed), settings_.documents, kCrashing);
    strike(run, faults_of(files));
    say("  the faults are over; " + std::to_string(run.unfinished()) +
        " documents are not final yet");
    std::string problems = run.problems("180s");
    if (!platform.stop()) problems += "a service does not stop\n";
    documents_ += settings_.documents;
    kills_ += run.kills();
    rounds_ += 1;
    say("  " + std::to_string(settings_.documents) + " documents, " + std::to_string(run.kills()) +
        " kills: " + (problems.empty() ? "all is well" : "FAILED\n" + problems));
    return problems.empty();
  }

  void tell() const {
    say("checked in " + std::to_string(rounds_) + " rounds with " + std::to_string(kills_) +
        " kills and " + std::to_string(faults_) + " other faults: each of " +
        std::to_string(documents_) +
        " documents is stored once, is in the final state that its kind must have, and has exactly "
        "its events and notifications; the dead letters are those that always fail or kill their "
        "process, and no others; the audit log is complete and sealed; every service stopped when "
        "it was told to");
  }

 private:
  // A kill every second while documents are submitted and handled, and now and then another fault.
  void strike(FaultRun& run, const std::vector<Fault>& faults) {
    int second = 0;
    const auto going_on = [&] {
      const int submitted = std::min(run.count(), second * kDocumentsASecond);
      return submitted < run.count() || run.unfinished() > run.count() / 20;
    };
    for (auto next = BootClock::now(); going_on(); ++second) {
      if (second > kLongestSeconds) throw std::runtime_error("the documents do not become final");
      run.submit(kDocumentsASecond);
      if (second % kEverySeconds == kEverySeconds - 1) {
        const Fault& fault = faults[run.random()() % faults.size()];
        const std::string more = fault.strike(run);
        say("  " + fault.name + (more.empty() ? "" : ": " + more));
        ++faults_;
      }
      (void)run.kill_one();
      next = std::max(next + 1s, BootClock::now());
      std::this_thread::sleep_for(next - BootClock::now());  // the pace of the faults
    }
    run.wait_for(run.count());
  }

  std::vector<Fault> faults_of(bool files) {
    std::vector<Fault> faults{
        {"a process stands still", [](FaultRun& run) { return run.stop_one_past_its_ttl(); }},
        {"many are killed", [](FaultRun& run) {
           std::string all;
           for (int i = 0; i < 8; ++i) all += run.kill_one() + " ";
           return all;
         }}};
    if (files) return faults;
    faults.push_back({"the broker restarts", [this](FaultRun&) {
                        rabbit_->stop();
                        rabbit_->start();
                        return std::string();
                      }});
    faults.push_back({"the broker crashes", [this](FaultRun&) {
                        rabbit_->crash();
                        rabbit_->start();
                        return std::string();
                      }});
    faults.push_back({"the database crashes", [this](FaultRun&) {
                        server_->restart(PostgresServer::StopMode::immediate);
                        return std::string();
                      }});
    return faults;
  }

  static constexpr int kDocumentsASecond = 50;

  const Settings settings_;
  std::optional<PostgresServer> server_;
  std::unique_ptr<RabbitServer> rabbit_;
  int rounds_ = 0;
  int documents_ = 0;
  int kills_ = 0;
  int faults_ = 0;
};

int torture(const Settings& settings) {
  const auto until = BootClock::now() + std::chrono::minutes(settings.minutes);
  Torture rounds(settings);
  int seed = settings.seed;
  do {
    if (!rounds.round(seed)) {
      say("seed " + std::to_string(seed) +
          " failed; once more: ./dev torture documents --minutes 0 --seed " + std::to_string(seed) +
          " --on " + settings.on);
      return 1;
    }
    ++seed;
  } while (BootClock::now() < until);
  say("seeds " + std::to_string(settings.seed) + " to " + std::to_string(seed - 1));
  rounds.tell();
  return 0;
}

}  // namespace
}  // namespace baton::test

int main(int argc, char** argv) {
  try {
    return baton::test::torture(baton::test::settings_of(argc, argv));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 2;
  }
}
