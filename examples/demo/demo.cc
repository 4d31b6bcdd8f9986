// Three workers, sixty units of work, one SQLite file. One worker is killed, one is paused for
// longer than its lease lasts. At the end every unit must have been done exactly once.

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>

#include "baton/locks.h"
#include "ledger.h"
#include "stage.h"
#include "worker.h"

namespace demo {
namespace {

using Worker = Actor;

// A unit that somebody holds, with whom and under which token.
struct Holding {
  int unit = 0;
  std::string worker;
  baton::Token token = 0;
  baton::Millis expires_in{0};
};

class Demo {
 public:
  explicit Demo(std::string directory)
      : directory_(std::move(directory)),
        ledger_(directory_ + "/ledger.db"),
        stage_([this] { return picture(); }) {}

  int run(const std::string& program);

 private:
  std::vector<Holding> holdings();
  std::optional<Holding> held_by(const std::string& worker);
  std::string picture();
  Holding stop_while_holding(const Worker& worker);
  void kill_one(Worker& worker);
  void pause_one(Worker& worker);
  int verdict();

  const std::string directory_;
  Ledger ledger_;
  std::optional<baton::LockClient> locks_;
  std::map<int, baton::Token> last_token_;
  bool tokens_grew_ = true;
  std::optional<Holding> killed_;
  std::optional<Holding> paused_;
  Stage stage_;
};

std::vector<Holding> Demo::holdings() {
  std::vector<Holding> found;
  const auto page = locks_->find({.region = "DEFAULT", .subject = "unit"});
  if (!page) return found;
  for (const auto& lock : page->items) {
    const auto name = baton::parse_key(lock.key);
    for (const auto& holder : lock.holders) {
      const int unit = std::atoi(name->resources.at(0).c_str());
      found.push_back({unit, holder.owner, holder.token, holder.expires_in});
      baton::Token& last = last_token_[unit];
      if (holder.token < last) tokens_grew_ = false;
      if (holder.token > last) {
        stage_.tell("unit/" + std::to_string(unit) + " is held by " + holder.owner +
                    " with token " + std::to_string(holder.token));
      }
      last = std::max(last, holder.token);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Holding& a, const Holding& b) { return a.worker < b.worker; });
  return found;
}

std::optional<Holding> Demo::held_by(const std::string& worker) {
  for (const Holding& holding : holdings()) {
    if (holding.worker == worker) return holding;
  }
  return std::nullopt;
}

std::string Demo::picture() {
  const auto held = holdings();
  const auto done = ledger_.done();
  std::map<std::string, int> counts;
  for (const Entry& entry : done) ++counts[entry.worker];
  const int width = 40;
  const auto filled = static_cast<std::size_t>(width) * done.size() / kUnits;
  std::string out = "  done  [" + std::string(filled, '#') + std::string(width - filled, '.') +
                    "] " + std::to_string(done.size()) + " of " + std::to_string(kUnits) + "\n\n";
  out += "  WORKER     STATE     DONE   HOLDS      TOKEN   EXPIRES IN\n";
  for (const Worker& worker : stage_.actors()) {
    std::array<char, 128> line{};
    const auto mine = std::find_if(held.begin(), held.end(),
                                   [&](const Holding& h) { return h.worker == worker.name; });
    std::string holds = "-";
    std::string token = "-";
    std::string expires = "-";
    if (mine != held.end()) {
      holds = "unit/" + std::to_string(mine->unit);
      token = std::to_string(mine->token);
      expires = std::to_string(mine->expires_in.count()) + " ms";
    }
    std::snprintf(line.data(), line.size(), "  %-10s %-9s %4d   %-9s %6s   %10s\n",
                  worker.name.c_str(), worker.state.c_str(), counts[worker.name], holds.c_str(),
                  token.c_str(), expires.c_str());
    out += line.data();
  }
  return out;
}

// Stops a worker where it holds a unit that it has not written down yet. One that is met elsewhere
// is let go and met again; so is one that is in the middle of a transaction, which would hold up
// everybody who uses that file.
Holding Demo::stop_while_holding(const Worker& worker) {
  std::optional<Holding> met;
  stage_.wait_until([&] {
    kill(worker.pid, SIGSTOP);
    met = held_by(worker.name);
    if (met && !ledger_.is_done(met->unit) && ledger_.can_write() &&
        locks_->try_acquire({.subject = "probe"})) {
      return true;
    }
    kill(worker.pid, SIGCONT);
    return false;
  });
  if (!met) throw std::runtime_error("never saw " + worker.name + " at work");
  return *met;
}

void Demo::kill_one(Worker& worker) {
  killed_ = stop_while_holding(worker);
  stage_.kill(worker);
  stage_.say(worker.name + " is killed (SIGKILL) while it holds unit/" +
             std::to_string(killed_->unit) + " with token " + std::to_string(killed_->token));
}

void Demo::pause_one(Worker& worker) {
  paused_ = stop_while_holding(worker);
  worker.state = "paused";
  stage_.say(worker.name + " is paused (SIGSTOP) while it holds unit/" +
             std::to_string(paused_->unit) + " with token " + std::to_string(paused_->token));
  if (!stage_.wait_until([&] { return ledger_.is_done(paused_->unit); })) stage_.fail();
  stage_.say("its lease ran out: another worker has done unit/" + std::to_string(paused_->unit));
  worker.state = "working";
  kill(worker.pid, SIGCONT);
  stage_.say(worker.name + " goes on, and tries to write what it had");
}

int Demo::verdict() {
  std::map<int, int> times;
  std::map<int, Entry> last;
  for (const Entry& entry : ledger_.done()) {
    ++times[entry.unit];
    last[entry.unit] = entry;
  }
  const bool once =
      std::all_of(times.begin(), times.end(), [](const auto& t) { return t.second == 1; });
  std::printf("\n");
  stage_.check(times.size() == kUnits, std::to_string(times.size()) + " of " +
                                           std::to_string(kUnits) +
                                           " units of work are done: none was lost");
  stage_.check(once, "each was done exactly once");
  const Entry& after_kill = last[killed_->unit];
  stage_.check(after_kill.token > killed_->token,
               "unit/" + std::to_string(killed_->unit) + " of the killed worker was done by " +
                   after_kill.worker + " with a newer token, " + std::to_string(after_kill.token));
  const auto refused = ledger_.refused();
  stage_.check(std::any_of(refused.begin(), refused.end(),
                           [&](const Entry& e) {
                             return e.unit == paused_->unit && e.token == paused_->token;
                           }),
               "the stale write of the paused worker (token " + std::to_string(paused_->token) +
                   ") was refused by the fence");
  stage_.check(tokens_grew_, "the tokens of each unit only ever grew");
  std::printf("\n%s\n", stage_.failed() ? "A check failed." : "All checks passed.");
  return stage_.failed() ? 1 : 0;
}

int Demo::run(const std::string& program) {
  std::printf("Baton demo: 3 workers, %d units of work, locks in one SQLite file, TTL 2 s.\n\n",
              kUnits);
  ledger_.create();
  locks_ = baton::open("sqlite:" + directory_ + "/locks.db", {.owner = "demo"}).value();
  for (int i = 1; i <= 3; ++i) {
    const std::string name = "worker-" + std::to_string(i);
    stage_.enter(name, {program, "--worker", name, directory_});
  }
  stage_.say("3 workers started");
  stage_.wait_until([&] { return ledger_.done().size() >= 8; });
  kill_one(stage_.actors()[0]);
  stage_.wait_until([&] { return ledger_.done().size() >= 20; });
  pause_one(stage_.actors()[1]);
  stage_.wait_until([&] { return !ledger_.refused().empty(); });
  if (!ledger_.refused().empty()) stage_.say("the fence refused it: its token is too old");
  if (!stage_.wait_until([&] { return ledger_.done().size() >= kUnits; })) stage_.fail();
  stage_.draw_last();
  stage_.stop_all();
  return verdict();
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  try {
    if (words.size() == 4 && words[1] == "--worker") return demo::work(words[3], words[2]);
    if (words.size() > 1) {
      std::puts("baton-demo: three workers share work under locks; takes about 20 seconds.");
      return words[1] == "--help" ? 0 : 2;
    }
    return demo::with_directory([](const std::string& directory) {
      return demo::Demo(directory).run(demo::own_program());
    });
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "baton-demo: %s\n", problem.what());
    return 1;
  }
}
