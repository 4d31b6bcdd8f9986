#include "deploy/demo_deployment.h"

#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <mutex>
#include <stdexcept>

#include <signal.h>

#include "json/json.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

// The address out of "… http://127.0.0.1:4711/metrics".
std::string target_in(const std::string& text) {
  const auto end = text.find("/metrics");
  const auto from = text.rfind("http://", end) + std::string_view("http://").size();
  return text.substr(from, end - from);
}

// Nothing waits for the pause: it only leaves the machine to the others.
std::jthread again_and_again(std::chrono::milliseconds pause, std::function<void()> what) {
  return std::jthread([pause, what = std::move(what)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      try {
        what();
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s\n", problem.what());  // the next time it may go well
      }
      never.wait_for(lock, stop, pause, [] { return false; });
    }
  });
}

}  // namespace

DemoDeployment::DemoDeployment(const std::vector<std::string>& rule_files) {
  configure();
  // Makes the tables of the source, which the nodes only read.
  const auto made = run({.argv = {BATON_WAREHOUSE, "generate", "--source", file("source.db"),
                                  "--rate", "10", "--seconds", "0.1"}});
  if (!made.status.success()) throw std::runtime_error(made.err);
  start("generator", {BATON_WAREHOUSE, "generate", "--source", file("source.db"), "--rate", "60",
                      "--seconds", "600"});
  PrometheusOptions options{.rule_files = rule_files, .interval = "500ms"};
  options.targets = {start_node("node-a", {}),
                     start_node("node-b", {}),
                     start_node("node-c", {"--source", "wes=" + file("none/source.db")}),
                     start_candidate("replica-1"),
                     start_candidate("replica-2"),
                     start_events(),
                     start_relay()};
  for (std::string& target : documents_targets()) options.targets.push_back(std::move(target));
  prometheus_ = std::make_unique<PrometheusServer>(std::move(options));
  // Until the end, so that however few of them come about in a time, some will.
  hand_overs_ = again_and_again(500ms, [this] {
    (void)baton({"leader", "resign", "outbox", "--timeout", "10s"});
  });
  submissions_ = again_and_again(2s, [this] { submit_every_fate(documents_); });
}

std::vector<std::string> DemoDeployment::documents_targets() const {
  std::vector<std::string> targets;
  for (const char* service :
       {"ingestion-1", "validation-1", "enrichment-1", "audit-1", "notification-1"}) {
    targets.push_back("127.0.0.1:" + std::to_string(documents_.port(service)));
  }
  return targets;
}

std::string DemoDeployment::file(const std::string& name) const {
  return "sqlite:" + (dir_ / name).string();
}

// As in apps/warehouse/warehouse.yaml, but in a hurry.
void DemoDeployment::configure() const {
  std::ofstream(dir_ / "warehouse.yaml") << R"(scheduler:
  observer:
    fixed-delay: 200
    backoff: 200
    lock:
      ttl: 2000
warehouse:
  observers:
    order: [web, shop]
    inventory: [north, south]
    wes: [belt, shelf]
)";
}

Process& DemoDeployment::start(const std::string& name, std::vector<std::string> argv) {
  // However the test process ends, these end with it.
  argv.insert(argv.begin(), {"setpriv", "--pdeathsig", "KILL"});
  auto& process = processes_[name];
  process = std::make_unique<Process>(ProcessOptions{.argv = std::move(argv)});
  return *process;
}

std::string DemoDeployment::start_node(const std::string& id,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> argv{BATON_WAREHOUSE, "node",
                                "--config",      (dir_ / "warehouse.yaml").string(),
                                "--node",        id,
                                "--store",       file("locks.db"),
                                "--data",        file("data.db"),
                                "--broker",      "embedded:" + (dir_ / "broker.db").string(),
                                "--source",      file("source.db"),
                                "--node-ttl",    "2s",
                                "--metrics",     "127.0.0.1:0",
                                "--log",         "text",
                                "--poll-takes",  "20ms"};
  argv.insert(argv.end(), more.begin(), more.end());
  Process& node = start(id, std::move(argv));
  if (!node.wait_for_out("/metrics")) throw std::runtime_error(id + ": " + node.err());
  return target_in(node.out());
}

std::string DemoDeployment::start_candidate(const std::string& id) {
  Process& candidate = start(id, {BATON_PROGRAM, "elect", "outbox", "--store", file("locks.db"),
                                  "--node", id, "--metrics", "127.0.0.1:0", "--", "sleep", "1000"});
  if (!candidate.wait_for_err("/metrics")) throw std::runtime_error(id + ": " + candidate.err());
  return target_in(candidate.err());
}

std::string DemoDeployment::start_events() {
  Process& node = start("events", {EVENTS_NODE, dir_.path().string()});
  if (!node.wait_for_out("/metrics")) throw std::runtime_error("events: " + node.err());
  return target_in(node.out());
}

std::string DemoDeployment::start_relay() {
  Process& relay =
      start("relay", {BATON_PROGRAM, "relay", "--name", "shop", "--outbox", file("service.db"),
                      "--broker", "embedded:" + (dir_ / "broker.db").string(), "--store",
                      file("locks.db"), "--metrics", "127.0.0.1:0"});
  if (!relay.wait_for_out("/metrics")) throw std::runtime_error("relay: " + relay.err());
  return target_in(relay.out());
}

Finished DemoDeployment::baton(std::vector<std::string> words) const {
  words.insert(words.begin(), BATON_PROGRAM);
  words.insert(words.end(), {"--store", file("locks.db")});
  return run({.argv = std::move(words)}, 2 * patience);
}

bool DemoDeployment::is_gone(const std::string& node) const {
  const Finished list = baton({"node", "list", "--json"});
  if (!list.status.success()) return false;
  const auto answer = nlohmann::json::parse(list.out);
  for (const auto& one : answer["nodes"]) {
    if (one["id"] == node) return !one["alive"].get<bool>();
  }
  return false;
}

bool DemoDeployment::kill_node_c() {
  Process& node = *processes_.at("node-c");
  node.kill(SIGKILL);
  return node.wait().has_value() && poll_until([&] { return is_gone("node-c"); }, patience, 50ms);
}

bool DemoDeployment::pause_node_b_past_its_ttl() {
  Process& node = *processes_.at("node-b");
  // It may happen to stop while it writes to the file of the locks, where it is in everybody's way:
  // then once more.
  return poll_until([&] {
    node.kill(SIGSTOP);
    const bool gone = poll_until([&] { return is_gone("node-b"); }, 10s, 50ms);
    node.kill(SIGCONT);
    return gone;
  });
}

}  // namespace baton::test
