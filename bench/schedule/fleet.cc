#include "schedule/fleet.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "baton/locks.h"
#include "baton/store_admin.h"
#include "harness/machine.h"

namespace baton::bench {

using namespace std::chrono_literals;

namespace {

Deployment deploy(const std::string& store) {
  if (store == "sqlite") return sqlite_deployment();
  if (store == "postgres-advisory") return postgres_deployment(store);
  if (store == "redis") return redis_deployment();
  if (store == "etcd") return etcd_deployment();
#ifdef BATON_HAS_STORE_KUBERNETES
  if (store == "kubernetes") return kubernetes_deployment();
#endif
  throw std::runtime_error("no store " + store);
}

}  // namespace

std::vector<std::string> known_stores() {
  return {
      "sqlite",
      "postgres",
#ifdef BATON_HAS_STORE_POSTGRES_ADVISORY
      "postgres-advisory",
#endif
#ifdef BATON_HAS_STORE_REDIS
      "redis",
#endif
#ifdef BATON_HAS_STORE_ETCD
      "etcd",
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
      "kubernetes",
#endif
  };
}

JobFleet::JobFleet(const std::string& store) {
  std::filesystem::create_directory(dir_ / "history");
  if (store != "postgres") {
    deployment_ = deploy(store);
    url_ = deployment_.url(deployment_.port);
    return;
  }
  server_ = std::make_unique<test::PostgresServer>(
      test::PostgresOptions{.settings = {{"max_connections", "200"}}});
  url_ = server_->url();
  const auto soon = BootClock::now() + 30s;
  open_admin(url_, soon).value()->migrate(soon).value();
}

void JobFleet::start(const std::string& id, const std::vector<std::string>& settings) {
  test::ProcessOptions options;
  options.argv = {BATON_BENCH_REPLICA, "url=" + url_, "node=" + id,
                  "history=" + (dir_ / "history" / id).string()};
  options.argv.insert(options.argv.end(), settings.begin(), settings.end());
  auto process = std::make_unique<test::Process>(std::move(options));
  if (!process->wait_for_out("ready")) throw std::runtime_error(id + ": " + process->err());
  nodes_[id] = std::move(process);
}

void JobFleet::end(const std::string& id) {
  auto process = std::move(nodes_.at(id));
  nodes_.erase(id);
  process->close_stdin();
  if (!process->wait()) throw std::runtime_error(id + " does not end");
  std::istringstream words(process->out());
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) continue;
    const double value = std::stod(word.substr(equals + 1));
    costs_[word.substr(0, equals)] += value;
    double& largest = largest_[word.substr(0, equals)];
    largest = std::max(largest, value);
  }
}

void JobFleet::kill(const std::string& id) {
  nodes_.at(id)->kill(SIGKILL);
  nodes_.erase(id);
}

void JobFleet::end_all() {
  for (const auto& [id, process] : nodes_) process->close_stdin();
  while (!nodes_.empty()) end(std::string(nodes_.begin()->first));
}

test::JobHistory JobFleet::history() const { return test::JobHistory::read(dir_ / "history"); }

double JobFleet::cost(const std::string& what) const {
  const auto it = costs_.find(what);
  return it == costs_.end() ? 0 : it->second;
}

double JobFleet::most(const std::string& what) const {
  const auto it = largest_.find(what);
  return it == largest_.end() ? 0 : it->second;
}

double JobFleet::server_cpu_seconds() const {
  const std::string parent = std::to_string(server_->pid());
  std::string processes = parent;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string pid;
    std::string name;
    std::string state;
    std::string its_parent;
    if (stat >> pid >> name >> state >> its_parent && its_parent == parent) processes += "," + pid;
  }
  return cpu_seconds_of(processes);
}

double JobFleet::server_transactions() const {
  return std::stod(server_->sql("SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"));
}

}  // namespace baton::bench
