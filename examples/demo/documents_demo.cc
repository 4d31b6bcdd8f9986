// Two hundred documents go through the five services of apps/documents, two replicas of each, while
// replicas are killed and one stands still for longer than its locks last. Some documents are
// invalid, some cannot be processed at all. At the end each must be in its right state, with each
// of its events recorded once and each notification sent once.

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "apps/documents/operate/replica.h"
#include "documents_check.h"
#include "platform.h"
#include "stage.h"
#include "submissions.h"

namespace demo {
namespace {

using namespace std::chrono_literals;
using baton::documents::Figures;

constexpr auto kWithEventsWithin = 5s;
constexpr auto kLookEvery = 200ms;  // at the figures, which takes some of the processor

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string bar(int done, int of) {
  constexpr int kWidth = 40;
  const int filled = of == 0 ? 0 : kWidth * done / of;
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(kWidth - filled), '.') + "] " + std::to_string(done) +
         " of " + std::to_string(of);
}

class DocumentsDemo {
 public:
  DocumentsDemo(std::string directory, const std::string& program, int documents)
      : directory_(std::move(directory)),
        programs_(std::filesystem::path(program).parent_path()),
        count_(documents),
        platform_(programs_ + "/documents", directory_ + "/documents-data"),
        stage_([this] { return picture(); }) {}
  int run();

 private:
  using Look = std::function<Platform::Turn()>;  // who does something now

  void start();
  void disturb();
  void await_submitted(int eighths);
  void await(const std::string& what, const std::function<bool()>& condition);
  Platform::Turn await_next(const Platform::Turn& last, const Look& look);
  void kill_replica(const std::string& instance, const std::string& what,
                    const std::string& more = "");
  void kill_and_pause_publishers();
  Platform::Turn pause_replica(const Look& look, const std::string& service);
  void kill_sealer();
  void follow(const Platform::Turn& last, const Look& look, const std::string& does);
  void tell_held();
  void resume();
  int run_command(const std::vector<std::string>& words, const std::string& log);
  bool stop_services();
  int verdict();
  void tell_what_next() const;

  std::string picture();
  std::string table();
  std::string role_of(const Platform::Replica& replica);
  void watch();
  void tell_progress();

  const std::string directory_;
  const std::string programs_;
  const int count_;
  Platform platform_;
  std::optional<Submitter> submitter_;
  Figures figures_;
  std::chrono::steady_clock::time_point looked_{};
  std::string table_;
  std::map<std::string, pid_t> killed_;         // not followed by another process yet
  std::map<std::string, std::string> at_work_;  // who publishes, by service, or seals
  Platform::Replica paused_;
  std::size_t log_before_pause_ = 0;
  bool ending_ = false;
  int told_ = 0;  // eighths of the documents
  Stage stage_;
};

std::string DocumentsDemo::role_of(const Platform::Replica& replica) {
  if (replica.pid == 0) return "starts";
  if (!replica.alive) return ending_ ? "ended" : "killed";
  if (replica.paused) return "paused";
  for (const auto& [work, instance] : at_work_) {
    if (instance == replica.instance) return work == "seal" ? "seals" : "publishes";
  }
  return "works";
}

// Two replicas a line, with what waits for their service.
std::string DocumentsDemo::table() {
  std::array<char, 160> line{};
  std::string out;
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line.data(), line.size(), format, values...);
    out += line.data();
  };
  constexpr const char* kLine = "  %-13s %-18s %-18s %6s %6s %5s %4s\n";
  add(kLine, "SERVICE", "REPLICA 1", "REPLICA 2", "QUEUED", "OUTBOX", "RETRY", "DEAD");
  for (const std::string& service : platform_.services()) {
    std::vector<std::string> replicas;
    for (const auto& replica : platform_.replicas(service)) {
      const std::string pid = replica.pid == 0 ? "" : std::to_string(replica.pid) + " ";
      replicas.push_back(pid + role_of(replica));
    }
    Figures::Service row;
    for (const auto& one : figures_.services) {
      if (one.name == service) row = one;
    }
    add(kLine, service.c_str(), replicas[0].c_str(), replicas[1].c_str(),
        row.queued ? std::to_string(*row.queued).c_str() : "-",
        row.to_publish ? std::to_string(*row.to_publish).c_str() : "-",
        std::to_string(row.retrying).c_str(), std::to_string(row.dead).c_str());
  }
  add("\n  %lld ENRICHED, %lld REJECTED, %lld FAILED; %lld events audited, %lld messages sent\n",
      static_cast<long long>(figures_.count("ENRICHED")),
      static_cast<long long>(figures_.count("REJECTED")),
      static_cast<long long>(figures_.count("FAILED")), static_cast<long long>(figures_.events),
      static_cast<long long>(figures_.notifications));
  return out;
}

std::string DocumentsDemo::picture() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ >= kLookEvery) {
    looked_ = now;
    if (submitter_) watch();
    table_ = table();
    tell_progress();
  }
  const int submitted = submitter_ ? submitter_->submitted() : 0;
  return "  submitted  " + bar(submitted, count_) + "\n  finished   " +
         bar(static_cast<int>(figures_.final()), count_) + "\n\n" + table_;
}

// Also says who follows those that were killed.
void DocumentsDemo::watch() {
  if (auto figures = platform_.figures()) figures_ = std::move(*figures);
  for (const char* service : {"ingestion", "validation", "enrichment"}) {
    at_work_[service] = platform_.publisher(service).instance;
  }
  at_work_["seal"] = platform_.sealer().instance;
  for (const auto& replica : platform_.replicas()) {
    if (!replica.alive) continue;
    const auto killed = killed_.find(replica.instance);
    if (killed == killed_.end() || killed->second == replica.pid) continue;
    killed_.erase(killed);
    stage_.say(replica.instance + " runs again: 'documents up' started process " +
               std::to_string(replica.pid));
  }
}

void DocumentsDemo::tell_progress() {
  const int submitted = submitter_ ? submitter_->submitted() : 0;
  if (submitted * 8 / count_ <= told_) return;
  told_ = submitted * 8 / count_;
  stage_.tell(std::to_string(submitted) + " of " + std::to_string(count_) + " submitted, " +
              std::to_string(figures_.final()) + " finished");
}

void DocumentsDemo::await(const std::string& what, const std::function<bool()>& condition) {
  if (stage_.wait_until(condition)) return;
  stage_.say("this takes too long: " + what);
  stage_.fail();
}

void DocumentsDemo::await_submitted(int eighths) {
  await("documents are submitted",
        [&] { return submitter_->ended() || submitter_->submitted() >= count_ * eighths / 8; });
}

// Who follows. A replica that runs again may follow itself.
Platform::Turn DocumentsDemo::await_next(const Platform::Turn& last, const Look& look) {
  Platform::Turn next;
  await("another replica follows " + last.instance, [&] {
    next = look();
    return !next.instance.empty() && next.token > last.token;
  });
  return next;
}

void DocumentsDemo::kill_replica(const std::string& instance, const std::string& what,
                                 const std::string& more) {
  const auto replica = platform_.replica(instance);
  if (!replica.alive) throw std::runtime_error(instance + " does not run");
  killed_[instance] = replica.pid;
  ::kill(replica.pid, SIGKILL);
  stage_.say(instance + what + " is killed (SIGKILL)" + more);
}

// Says who follows.
void DocumentsDemo::follow(const Platform::Turn& last, const Look& look, const std::string& does) {
  const auto next = await_next(last, look);
  const bool again = next.instance == last.instance;  // another process of that name
  stage_.say(next.instance + " " + does + " now: the lock of " +
             (again ? "its killed process" : last.instance) + " ran out");
}

// Where it has work in hand, if it is met so. To look for that moment takes so long that another
// replica may follow meanwhile: the answer is whose turn it was when the pause began.
Platform::Turn DocumentsDemo::pause_replica(const Look& look, const std::string& service) {
  Platform::Turn turn;
  const auto with_events_until = std::chrono::steady_clock::now() + kWithEventsWithin;
  bool with_events = true;
  await("a good moment to pause a replica of " + service, [&] {
    turn = look();
    paused_ = platform_.replica(turn.instance);
    log_before_pause_ = platform_.log_size(paused_.instance);
    const auto until = std::chrono::steady_clock::now() + kLookEvery;
    bool paused = false;
    while (!paused && std::chrono::steady_clock::now() < until) {
      with_events = std::chrono::steady_clock::now() < with_events_until;
      paused = platform_.pause(paused_, service, with_events);
    }
    return paused;
  });
  stage_.say(paused_.instance + ", which publishes, is paused (SIGSTOP)" +
             (with_events ? " with work in hand" : ""));
  return turn;
}

// When the events of validation come again, many come at once: then enrichment has them in hand.
void DocumentsDemo::kill_and_pause_publishers() {
  const Look validation = [&] { return platform_.publisher("validation"); };
  const Look enrichment = [&] { return platform_.publisher("enrichment"); };
  const auto killed = await_next({}, validation);
  kill_replica(killed.instance, ", which publishes,");
  await_next({}, enrichment);
  const auto paused = pause_replica(enrichment, "enrichment");
  follow(killed, validation, "publishes");
  follow(paused, enrichment, "publishes");
}

void DocumentsDemo::kill_sealer() {
  const Look look = [&] { return platform_.sealer(); };
  const auto killed = await_next({}, look);
  kill_replica(killed.instance, ", which was elected to seal the log,");
  follow(killed, look, "seals");
}

void DocumentsDemo::tell_held() {
  const auto figures = platform_.figures();
  if (!figures) return;
  for (const auto& service : figures->services) {
    if (!paused_.instance.starts_with(service.name) || service.queued.value_or(0) == 0) continue;
    stage_.say(paused_.instance + " still has " + std::to_string(*service.queued) +
               " events; after 10 s the broker gives it up");
  }
}

void DocumentsDemo::resume() {
  ::kill(paused_.pid, SIGCONT);
  const auto until = std::chrono::steady_clock::now() + 3s;
  int late = 0;
  await("the paused replica goes on", [&] {
    late = platform_.count_in_log(paused_.instance, log_before_pause_, "EVENT_SKIPPED_IDEMPOTENT");
    return late > 0 || std::chrono::steady_clock::now() > until;
  });
  stage_.say(paused_.instance + " goes on (SIGCONT)" +
             (late > 0 ? ", and skips what others have done" : ", and changes nothing"));
}

void DocumentsDemo::start() {
  stage_.say("10 processes start: 5 services, 2 replicas of each");
  Actor& up = stage_.enter("up", platform_.up(), directory_ + "/up.log");
  await("all replicas serve", [&] {
    if (waitpid(up.pid, nullptr, WNOHANG) == up.pid) {
      up.pid = 0;
      throw std::runtime_error("'documents up' has ended: " + text_of(directory_ + "/up.log"));
    }
    return platform_.ready();
  });
  submitter_.emplace(count_, [this] {
    std::vector<std::string> urls;
    for (auto& replica : platform_.replicas("ingestion")) {
      if (!replica.url.empty()) urls.push_back(replica.url);
    }
    return urls;
  });
  stage_.say("all serve; documents are submitted to both replicas of ingestion");
}

void DocumentsDemo::disturb() {
  await_submitted(1);
  kill_and_pause_publishers();
  await_submitted(4);
  kill_replica("ingestion-1", "", "; its clients turn to ingestion-2");
  kill_sealer();
  await_submitted(7);
  kill_replica("notification-2", "", " while it sends messages");
  await("all documents are submitted", [&] { return submitter_->ended(); });
  if (!submitter_->trouble().empty()) throw std::runtime_error(submitter_->trouble());
  stage_.say(std::to_string(submitter_->submitted()) + " documents are submitted; " +
             std::to_string(submitter_->repeated()) + " requests had to be repeated");
  tell_held();
  await("all documents are finished", [&] { return figures_.final() >= count_; });
  stage_.say("all are finished, though " + paused_.instance + " still stands still");
  resume();
  await("all that were killed run again", [&] { return killed_.empty(); });
}

int DocumentsDemo::run_command(const std::vector<std::string>& words, const std::string& log) {
  const pid_t pid = Stage::start(words, log);
  int status = 0;
  await("'documents " + words[1] + "' ends", [&] { return waitpid(pid, &status, WNOHANG) == pid; });
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool DocumentsDemo::stop_services() {
  ending_ = true;
  Actor& up = stage_.actors().front();
  ::kill(up.pid, SIGTERM);
  int status = 0;
  const bool ended = stage_.wait_until([&] { return waitpid(up.pid, &status, WNOHANG) == up.pid; });
  if (ended) up.pid = 0;
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int DocumentsDemo::verdict() {
  const int verified =
      run_command(platform_.command({"verify", "--wait", "30s"}), directory_ + "/verify.log");
  const int chain =
      run_command(platform_.command({"audit", "verify"}), directory_ + "/audit-verify.log");
  const bool stopped = stop_services();
  looked_ = {};
  stage_.draw_last();
  std::printf("\n$ documents verify\n%s\n", text_of(directory_ + "/verify.log").c_str());
  for (const auto& finding : check_documents(platform_.places(), submitter_->documents())) {
    stage_.check(finding.ok, finding.what);
  }
  stage_.check(verified == 0, "documents verify: the five databases agree with one another");
  stage_.check(chain == 0, "documents audit verify: the hash chain of the audit log is whole");
  stage_.check(stopped, "all processes have ended well when they were told to");
  std::printf("\n%s\n", stage_.failed() ? "A check failed." : "All checks passed.");
  return stage_.failed() ? 1 : 0;
}

void DocumentsDemo::tell_what_next() const {
  std::printf(
      "\nThe services are stopped, their files are kept. What to look at next:\n\n"
      "  cd %s\n"
      "  export PATH=%s:$PATH\n"
      "  documents trace demo-5      # one poison document, as all services saw it\n"
      "  documents audit verify      # whether anybody changed the audit log\n"
      "  baton dlq list --database sqlite:documents-data/enrichment.db\n"
      "  documents up                # runs them again; then, in another shell:\n"
      "  curl 'http://127.0.0.1:8080/documents?status=FAILED'\n"
      "  baton dlq redrive --all --database sqlite:documents-data/enrichment.db\n"
      "                              # poison is none without --allow-simulation\n"
      "  rm -r %s\n",
      directory_.c_str(), programs_.c_str(), directory_.c_str());
}

int DocumentsDemo::run() {
  std::printf(
      "Baton demo: 5 services process %d documents, and talk by events only. Each has\n"
      "2 replicas and a database of its own. Replicas are killed and paused meanwhile.\n\n",
      count_);
  std::fflush(stdout);
  start();
  disturb();
  const int code = verdict();
  tell_what_next();
  return code;
}

constexpr int kUsual = 200;
constexpr int kFewest = 40;
constexpr int kMost = 2'000;

// 0: the command line is wrong.
int documents_of(const std::vector<std::string>& words) {
  if (words.empty()) return kUsual;
  int count = 0;
  if (words.size() != 2 || words[0] != "--documents") return 0;
  const char* end = words[1].data() + words[1].size();
  const bool number = std::from_chars(words[1].data(), end, count).ptr == end;
  return number && count >= kFewest && count <= kMost ? count : 0;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    const int documents = demo::documents_of(words);
    if (documents == 0) {
      std::printf(
          "usage: baton-demo-documents [--documents N]\n"
          "Five services process N documents (%d to %d, else %d) while replicas are killed and\n"
          "paused; takes about 20 seconds, and leaves a directory to look at.\n",
          demo::kFewest, demo::kMost, demo::kUsual);
      return words.size() == 1 && words[0] == "--help" ? 0 : 2;
    }
    return demo::with_directory(
        [documents](const std::string& directory) {
          try {
            return demo::DocumentsDemo(directory, demo::own_program(), documents).run();
          } catch (const std::exception& problem) {
            throw std::runtime_error(std::string(problem.what()) + "\nSee " + directory);
          }
        },
        demo::Afterwards::keep);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "baton-demo-documents: %s\n", problem.what());
    return 1;
  }
}
