// Three nodes poll orders, inventory and warehouse tasks while rows are written. One node is
// killed in the middle of a poll, one stands still for longer than its lock lasts. At the end every
// row of the source must have become exactly one event.

#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "baton/job_control.h"
#include "baton/locks.h"
#include "sql/connection.h"
#include "stage.h"

namespace demo {
namespace {

using namespace std::chrono_literals;
namespace sql = baton::sql;

constexpr const char* kConfig = R"(scheduler:
  observer:
    fixed-delay: 300
    lock:
      ttl: 2000
warehouse:
  lateness: 3s
  observers:
    order: [web, shop]
    inventory: [north, south]
    wes: [belt, shelf]
)";

// A poll that a node has begun and not ended.
struct Polling {
  std::string type;
  std::int64_t token = 0;
};

class WarehouseDemo {
 public:
  WarehouseDemo(std::string directory, const std::string& program)
      : directory_(std::move(directory)),
        program_(std::filesystem::path(program).parent_path() / "warehouse"),
        config_(directory_ + "/warehouse.yaml"),
        stage_([this] { return picture(); }) {
    std::ofstream(config_) << kConfig;
  }
  int run();

 private:
  [[nodiscard]] std::string at(const std::string& file) const {
    return "sqlite:" + directory_ + "/" + file;
  }
  [[nodiscard]] std::vector<std::string> command(const std::string& name,
                                                 const std::vector<std::string>& more) const;
  sql::Rows ask(const std::string& sql) const;
  std::int64_t count(const std::string& sql) const;
  std::string picture();
  std::optional<Polling> polling(const std::string& node);
  [[nodiscard]] bool nobody_writes();
  Polling stop_while_polling(const Actor& node);
  bool polled_by_another(const Polling& poll) const;
  void kill_one(Actor& node);
  void pause_one(Actor& node);
  [[nodiscard]] bool was_refused(const Actor& node) const;
  int verdict(int verified);

  const std::string directory_;
  const std::string program_;
  const std::string config_;
  std::unique_ptr<sql::Connection> data_;
  std::optional<baton::LockClient> locks_;
  std::optional<Polling> killed_;
  std::optional<Polling> paused_;
  Stage stage_;
};

std::vector<std::string> WarehouseDemo::command(const std::string& name,
                                                const std::vector<std::string>& more) const {
  std::vector<std::string> words{program_, name, "--config", config_, "--source", at("source.db")};
  if (name != "generate") words.insert(words.end(), {"--data", at("data.db")});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

sql::Rows WarehouseDemo::ask(const std::string& sql) const {
  auto rows = data_->query(sql);
  return rows ? std::move(*rows) : sql::Rows();
}

std::int64_t WarehouseDemo::count(const std::string& sql) const {
  const auto rows = ask(sql);
  return rows.empty() ? 0 : rows.front().integer(0);
}

std::string WarehouseDemo::picture() {
  std::map<std::string, std::map<std::string, std::string>> events;
  for (const auto& row :
       ask("SELECT node, type, count(*) FROM warehouse_outbox GROUP BY node, type")) {
    events[row.text(0)][row.text(1)] = row.text(2);
  }
  std::map<std::string, std::string> polls;
  for (const auto& row : ask("SELECT node, count(*) FROM warehouse_poll GROUP BY node")) {
    polls[row.text(0)] = row.text(1);
  }
  std::string out = "  NODE     STATE     POLLS   EVENTS: order  inventory   wes   POLLS NOW\n";
  const auto or_zero = [](const std::string& text) { return text.empty() ? "0" : text.c_str(); };
  for (const Actor& node : stage_.actors()) {
    std::array<char, 160> line{};
    const auto now = polling(node.name);
    const std::string what = now ? now->type + " (token " + std::to_string(now->token) + ")" : "-";
    auto& mine = events[node.name];
    std::snprintf(line.data(), line.size(), "  %-8s %-9s %5s   %13s %10s %5s   %s\n",
                  node.name.c_str(), node.state.c_str(), or_zero(polls[node.name]),
                  or_zero(mine["order"]), or_zero(mine["inventory"]), or_zero(mine["wes"]),
                  what.c_str());
    out += line.data();
  }
  return out;
}

// What it holds the lock for, and has begun.
std::optional<Polling> WarehouseDemo::polling(const std::string& node) {
  const auto jobs = baton::list_jobs(*locks_);
  if (!jobs) return std::nullopt;
  for (const auto& row : ask("SELECT type, token FROM warehouse_poll WHERE node = '" + node +
                             "' AND outcome = 'unfinished'")) {
    for (const auto& job : *jobs) {
      if (job.name == row.text(0) + "-observer-poll" && std::to_string(job.token) == row.text(1)) {
        return Polling{row.text(0), row.integer(1)};
      }
    }
  }
  return std::nullopt;
}

// A process that is stopped in the middle of a transaction of SQLite holds up all others.
bool WarehouseDemo::nobody_writes() {
  auto probe = sql::Connection::open(at("data.db"), {.name = "data", .statement_timeout = 500ms});
  return probe && (*probe)->script("BEGIN IMMEDIATE; ROLLBACK") &&
         locks_->try_acquire({.subject = "probe"}, {.ttl = 5s});
}

Polling WarehouseDemo::stop_while_polling(const Actor& node) {
  std::optional<Polling> met;
  stage_.wait_until([&] {
    kill(node.pid, SIGSTOP);
    waitpid(node.pid, nullptr, WUNTRACED);  // a signal takes its time
    met = polling(node.name);
    if (met && nobody_writes()) return true;
    kill(node.pid, SIGCONT);
    met.reset();
    return false;
  });
  if (!met) throw std::runtime_error("never saw " + node.name + " at work");
  return *met;
}

bool WarehouseDemo::polled_by_another(const Polling& poll) const {
  return count("SELECT count(*) FROM warehouse_poll WHERE outcome = 'ok' AND type = '" + poll.type +
               "' AND token > " + std::to_string(poll.token)) > 0;
}

void WarehouseDemo::kill_one(Actor& node) {
  killed_ = stop_while_polling(node);
  stage_.kill(node);
  stage_.say(node.name + " is killed (SIGKILL) in the middle of a poll of " + killed_->type +
             ", with token " + std::to_string(killed_->token));
  if (!stage_.wait_until([&] { return polled_by_another(*killed_); })) stage_.fail();
  stage_.say("its lock ran out: " + killed_->type + " is polled by another node");
}

void WarehouseDemo::pause_one(Actor& node) {
  paused_ = stop_while_polling(node);
  node.state = "paused";
  stage_.say(node.name + " is paused (SIGSTOP) in the middle of a poll of " + paused_->type +
             ", with token " + std::to_string(paused_->token));
  if (!stage_.wait_until([&] { return polled_by_another(*paused_); })) stage_.fail();
  stage_.say("its lock ran out: another node has polled " + paused_->type);
  node.state = "working";
  kill(node.pid, SIGCONT);
  stage_.say(node.name + " goes on, and tries to write what it had read");
  if (stage_.wait_until([&] { return was_refused(node); })) {
    stage_.say("the fence refused it: its token is too old");
  }
}

bool WarehouseDemo::was_refused(const Actor& node) const {
  std::ifstream file(directory_ + "/" + node.name + ".log");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str().find("overtaken by a newer holder") != std::string::npos;
}

int WarehouseDemo::verdict(int verified) {
  std::printf("\n");
  const auto refused = count(
      "SELECT count(*) FROM warehouse_outbox WHERE token = " + std::to_string(paused_->token) +
      " AND type = '" + paused_->type + "' AND node <> '" + stage_.actors()[1].name + "'");
  stage_.check(polled_by_another(*killed_), killed_->type +
                                                ", which the killed node was polling, "
                                                "was polled again with a higher token");
  stage_.check(was_refused(stage_.actors()[1]) && refused == 0,
               "the late write of the paused node (token " + std::to_string(paused_->token) +
                   ") was refused by the fence");
  stage_.check(verified == 0, "warehouse verify: every source row was observed exactly once");
  std::printf("\n%s\n", stage_.failed() ? "A check failed." : "All checks passed.");
  return stage_.failed() ? 1 : 0;
}

int status_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int WarehouseDemo::run() {
  std::printf("Baton demo: 3 nodes poll 3 types of observers, all on SQLite files, TTL 2 s.\n\n");
  std::fflush(stdout);
  data_ = sql::Connection::open(at("data.db"), {.name = "data"}).value();
  locks_ = baton::open(at("locks.db"), {.owner = "demo"}).value();
  const pid_t generator = Stage::start(
      command("generate", {"--rate", "60", "--seconds", "18", "--late", "1s", "--tick", "50ms"}),
      directory_ + "/generate.log");
  for (int i = 1; i <= 3; ++i) {
    const std::string name = "node-" + std::to_string(i);
    stage_.enter(name,
                 command("node", {"--store", at("locks.db"), "--node", name, "--node-ttl", "2s",
                                  "--poll-takes", "150ms", "--log", "text"}),
                 directory_ + "/" + name + ".log");
  }
  stage_.say("3 nodes started; rows are written, late and with equal times");
  stage_.wait_until([&] { return count("SELECT count(*) FROM warehouse_outbox") >= 100; });
  kill_one(stage_.actors()[0]);
  pause_one(stage_.actors()[1]);
  bool written = false;
  stage_.wait_until([&] { return written = written || waitpid(generator, nullptr, WNOHANG) != 0; });
  std::string made;
  std::getline(std::ifstream(directory_ + "/generate.log"), made);
  stage_.say(made.substr(0, made.find(", the latest")));
  const pid_t verifier =
      Stage::start(command("verify", {"--wait", "30s"}), directory_ + "/verify.log");
  const int verified = status_of(verifier);
  stage_.draw();
  stage_.stop_all();
  std::ifstream figures(directory_ + "/verify.log");
  std::ostringstream text;
  text << figures.rdbuf();
  std::printf("\n%s", text.str().c_str());
  return verdict(verified);
}

}  // namespace
}  // namespace demo

int main(int argc, char**) {
  try {
    if (argc > 1) {
      std::puts("baton-demo-warehouse: three nodes share observers; takes about 30 seconds.");
      return 2;
    }
    return demo::with_directory([](const std::string& directory) {
      return demo::WarehouseDemo(directory, demo::own_program()).run();
    });
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "baton-demo-warehouse: %s\n", problem.what());
    return 1;
  }
}
