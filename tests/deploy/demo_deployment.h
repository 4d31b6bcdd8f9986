#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "deploy/shared_platform.h"
#include "support/process.h"
#include "support/prometheus_server.h"
#include "support/temp_dir.h"

namespace baton::test {

// The warehouse on SQLite, as its demo runs it, with a Prometheus that scrapes every process: three
// nodes with three types and a source that grows, and two replicas of a service that lead in turn,
// for there is no queue of waiters in the warehouse. Beside it a service with an outbox, a consumer
// and an event log (events_node.cc), a relay, and the document platform on files, which gets
// documents of every fate. Then things go wrong for real:
//
//   - node-c cannot reach its source of one type, so that there are polls that fail;
//   - node-c is killed;
//   - node-b stands still until its leases have ended, so that there are losses and overlaps.
class DemoDeployment {
 public:
  // Throws if something does not start.
  explicit DemoDeployment(const std::vector<std::string>& rule_files);

  PrometheusServer& prometheus() { return *prometheus_; }

  // Each returns false if it does not come about.
  bool kill_node_c();
  bool pause_node_b_past_its_ttl();

 private:
  [[nodiscard]] std::string file(const std::string& name) const;
  void configure() const;
  Process& start(const std::string& name, std::vector<std::string> argv);
  std::string start_node(const std::string& id, const std::vector<std::string>& more);
  std::string start_candidate(const std::string& id);
  std::string start_events();
  std::string start_relay();
  [[nodiscard]] std::vector<std::string> documents_targets() const;
  [[nodiscard]] Finished baton(std::vector<std::string> words) const;
  [[nodiscard]] bool is_gone(const std::string& node) const;

  TempDir dir_{"deploy"};
  std::map<std::string, std::unique_ptr<Process>> processes_;
  std::unique_ptr<PrometheusServer> prometheus_;
  Platform documents_;
  std::jthread hand_overs_;
  std::jthread submissions_;
};

}  // namespace baton::test
