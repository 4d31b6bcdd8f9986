// Three nodes poll orders, inventory and warehouse tasks while rows are written, and publish what
// they find; two counters subscribe to it. The node that publishes is killed in the middle of a
// poll, one stands still for longer than its lock lasts, and a counter is killed. At the end every
// row of the source must have become exactly one event, with exactly one effect.

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
#include "baton/partitions.h"
#include "sql/connection.h"
#include "stage.h"

namespace demo {
namespace {

using namespace std::chrono_literals;
namespace sql = baton::sql;

constexpr const char* kRows =
    "SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM inventory_changes)"
    " + (SELECT count(*) FROM wes_tasks)";
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
  static sql::Rows ask(const std::unique_ptr<sql::Connection>& database, const std::string& sql);
  static std::int64_t count(const std::unique_ptr<sql::Connection>& database,
                            const std::string& sql);
  [[nodiscard]] sql::Rows ask(const std::string& sql) const { return ask(data_, sql); }
  [[nodiscard]] std::int64_t count(const std::string& sql) const { return count(data_, sql); }
  [[nodiscard]] std::int64_t effects_of(const std::string& counter) const;
  std::string picture();
  std::string picture_of_nodes();
  [[nodiscard]] std::string publisher();
  Actor& actor(const std::string& name);
  void enter_all();
  std::optional<Polling> polling(const std::string& node);
  [[nodiscard]] bool nobody_writes();
  Polling stop_while_polling(const Actor& node);
  bool polled_by_another(const Polling& poll) const;
  void kill_node(Actor& node);
  void kill_counter(Actor& counter);
  void pause_node(Actor& node);
  [[nodiscard]] bool was_refused(const Actor& node) const;
  int verdict(int verified);

  const std::string directory_;
  const std::string program_;
  const std::string config_;
  std::unique_ptr<sql::Connection> data_;
  std::unique_ptr<sql::Connection> source_;
  std::unique_ptr<sql::Connection> effects_;
  std::optional<baton::LockClient> locks_;
  std::optional<Polling> killed_;
  std::string killed_node_;
  std::optional<Polling> paused_;
  std::string paused_node_;
  Stage stage_;
};

std::vector<std::string> WarehouseDemo::command(const std::string& name,
                                                const std::vector<std::string>& more) const {
  std::vector<std::string> words{program_, name};
  const auto add = [&](const std::vector<std::string>& some) {
    words.insert(words.end(), some.begin(), some.end());
  };
  if (name != "count") add({"--config", config_, "--source", at("source.db")});
  if (name == "node" || name == "verify") add({"--data", at("data.db")});
  if (name == "count" || name == "verify") add({"--effects", at("effects.db")});
  if (name == "node" || name == "count") {
    add({"--broker", "embedded:" + directory_ + "/broker.db", "--log", "text"});
  }
  add(more);
  return words;
}

// Nothing as long as the tables are not there.
sql::Rows WarehouseDemo::ask(const std::unique_ptr<sql::Connection>& database,
                             const std::string& sql) {
  auto rows = database->query(sql);
  return rows ? std::move(*rows) : sql::Rows();
}

std::int64_t WarehouseDemo::count(const std::unique_ptr<sql::Connection>& database,
                                  const std::string& sql) {
  const auto rows = ask(database, sql);
  return rows.empty() ? 0 : rows.front().integer(0);
}

std::int64_t WarehouseDemo::effects_of(const std::string& counter) const {
  return count(effects_,
               "SELECT count(*) FROM warehouse_effect WHERE counted_by = '" + counter + "'");
}

Actor& WarehouseDemo::actor(const std::string& name) {
  for (Actor& actor : stage_.actors()) {
    if (actor.name == name) return actor;
  }
  throw std::runtime_error("there is no " + name);
}

// The node whose relay has the one lane that an outbox in SQLite has.
std::string WarehouseDemo::publisher() {
  const auto sets = baton::partition_sets(*locks_, "relay/warehouse");
  return sets && !sets->empty() ? sets->front().partitions.front().node : "";
}

std::string WarehouseDemo::picture() {
  std::string out = picture_of_nodes() + "\n  COUNTER  STATE    EFFECTS\n";
  std::array<char, 160> line{};
  for (const Actor& actor : stage_.actors()) {
    if (!actor.name.starts_with("count")) continue;
    std::snprintf(line.data(), line.size(), "  %-8s %-8s %7lld\n", actor.name.c_str(),
                  actor.state.c_str(), static_cast<long long>(effects_of(actor.name)));
    out += line.data();
  }
  std::snprintf(line.data(), line.size(), "\n  %lld rows  ->  %lld events  ->  %lld effects\n",
                static_cast<long long>(count(source_, kRows)),
                static_cast<long long>(count("SELECT count(*) FROM outbox_events")),
                static_cast<long long>(count(effects_, "SELECT count(*) FROM warehouse_effect")));
  return out + line.data();
}

std::string WarehouseDemo::picture_of_nodes() {
  std::map<std::string, std::map<std::string, std::string>> events;
  for (const auto& row : ask("SELECT headers ->> 'node', aggregate_type, count(*) FROM "
                             "outbox_events GROUP BY 1, 2")) {
    events[row.text(0)][row.text(1)] = row.text(2);
  }
  std::map<std::string, std::string> polls;
  for (const auto& row : ask("SELECT node, count(*) FROM warehouse_poll GROUP BY node")) {
    polls[row.text(0)] = row.text(1);
  }
  std::string out = "  NODE     STATE    POLLS  EVENTS: order inventory  wes  RELAY  NOW (TOKEN)\n";
  const auto or_zero = [](const std::string& text) { return text.empty() ? "0" : text.c_str(); };
  const std::string publishes = publisher();
  for (const Actor& node : stage_.actors()) {
    if (!node.name.starts_with("node")) continue;
    std::array<char, 160> line{};
    const auto now = polling(node.name);
    const std::string what = now ? now->type + " (" + std::to_string(now->token) + ")" : "-";
    auto& mine = events[node.name];
    std::snprintf(line.data(), line.size(), "  %-8s %-8s %5s  %13s %9s %4s  %-5s  %s\n",
                  node.name.c_str(), node.state.c_str(), or_zero(polls[node.name]),
                  or_zero(mine["order"]), or_zero(mine["inventory"]), or_zero(mine["wes"]),
                  node.name == publishes ? "yes" : "-", what.c_str());
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
  const auto writable = [this](const std::string& file) {
    auto probe = sql::Connection::open(at(file), {.name = file, .statement_timeout = 500ms});
    return probe && (*probe)->script("BEGIN IMMEDIATE; ROLLBACK");
  };
  return writable("data.db") && writable("broker.db") &&
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

void WarehouseDemo::kill_node(Actor& node) {
  killed_ = stop_while_polling(node);
  killed_node_ = node.name;
  stage_.kill(node);
  stage_.say(node.name + ", the relay, is killed (SIGKILL) polling " + killed_->type + " (token " +
             std::to_string(killed_->token) + ")");
  if (!stage_.wait_until([&] { return polled_by_another(*killed_); })) stage_.fail();
  stage_.say("its lock ran out: " + killed_->type + " is polled by another node");
  const auto taken = [&] { return !publisher().empty() && publisher() != killed_node_; };
  if (!stage_.wait_until(taken)) stage_.fail();
  stage_.say("so did its lane of the outbox: " + publisher() + " is the relay now");
}

void WarehouseDemo::kill_counter(Actor& counter) {
  stage_.wait_until([&] { return effects_of(counter.name) > 0; });
  stage_.kill(counter);
  stage_.say(counter.name + " is killed (SIGKILL): the other one gets what it had");
}

void WarehouseDemo::pause_node(Actor& node) {
  paused_ = stop_while_polling(node);
  paused_node_ = node.name;
  node.state = "paused";
  stage_.say(node.name + " is paused (SIGSTOP) while it polls " + paused_->type + " with token " +
             std::to_string(paused_->token));
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
  const auto refused = count("SELECT count(*) FROM outbox_events WHERE headers ->> 'token' = '" +
                             std::to_string(paused_->token) + "' AND aggregate_type = '" +
                             paused_->type + "' AND headers ->> 'node' <> '" + paused_node_ + "'");
  stage_.check(polled_by_another(*killed_), killed_->type + " of the killed " + killed_node_ +
                                                " was polled again with a newer token");
  stage_.check(was_refused(actor(paused_node_)) && refused == 0,
               "the late write of the paused node (token " + std::to_string(paused_->token) +
                   ") was refused by the fence");
  stage_.check(verified == 0,
               "warehouse verify: each row became one event, and each event one effect");
  std::printf("\n%s\n", stage_.failed() ? "A check failed." : "All checks passed.");
  return stage_.failed() ? 1 : 0;
}

int status_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void WarehouseDemo::enter_all() {
  for (int i = 1; i <= 3; ++i) {
    const std::string name = "node-" + std::to_string(i);
    stage_.enter(name,
                 command("node", {"--store", at("locks.db"), "--node", name, "--node-ttl", "2s",
                                  "--poll-takes", "150ms"}),
                 directory_ + "/" + name + ".log");
  }
  for (const std::string name : {"count-1", "count-2"}) {
    stage_.enter(name, command("count", {"--node", name}), directory_ + "/" + name + ".log");
  }
}

int WarehouseDemo::run() {
  std::printf(
      "Baton demo: 3 nodes poll 3 types of observers and publish events, which 2\n"
      "counters count. All on SQLite files, TTL 2 s.\n\n");
  std::fflush(stdout);
  data_ = sql::Connection::open(at("data.db"), {.name = "data"}).value();
  source_ = sql::Connection::open(at("source.db"), {.name = "source"}).value();
  effects_ = sql::Connection::open(at("effects.db"), {.name = "effects"}).value();
  locks_ = baton::open(at("locks.db"), {.owner = "demo"}).value();
  const pid_t generator = Stage::start(
      command("generate", {"--rate", "60", "--seconds", "18", "--late", "1s", "--tick", "50ms"}),
      directory_ + "/generate.log");
  enter_all();
  stage_.say("3 nodes and 2 counters start; rows come late and with equal times");
  stage_.wait_until([&] { return count("SELECT count(*) FROM outbox_events") >= 100; });
  kill_node(actor(publisher()));
  kill_counter(actor("count-1"));
  pause_node(actor(killed_node_ == "node-1" ? "node-2" : "node-1"));
  bool written = false;
  stage_.wait_until([&] { return written = written || waitpid(generator, nullptr, WNOHANG) != 0; });
  std::string made;
  std::getline(std::ifstream(directory_ + "/generate.log"), made);
  stage_.say(made.substr(0, made.find(", the latest")));
  const pid_t verifier =
      Stage::start(command("verify", {"--wait", "30s"}), directory_ + "/verify.log");
  const int verified = status_of(verifier);
  stage_.draw_last();
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
      std::puts("baton-demo-warehouse: nodes share observers and publish; takes about 30 seconds.");
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
