#pragma once

// Node processes (tests/support/job_replica) on a store of their own.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "baton/clock.h"
#include "stores/deployments.h"
#include "support/job_history.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::bench {

// Those of this build that processes can share.
[[nodiscard]] std::vector<std::string> known_stores();

class JobFleet {
 public:
  // A store's name as in known_stores().
  explicit JobFleet(const std::string& store);

  void start(const std::string& id, const std::vector<std::string>& settings);
  void end(const std::string& id);  // and add up what it cost
  void kill(const std::string& id);
  void end_all();

  [[nodiscard]] test::JobHistory history() const;
  [[nodiscard]] double cost(const std::string& what) const;  // as job_replica prints it, summed
  [[nodiscard]] double most(const std::string& what) const;  // the largest of any node

  // Of postgres, so far.
  [[nodiscard]] double server_cpu_seconds() const;
  [[nodiscard]] double server_transactions() const;

 private:
  test::TempDir dir_{"bench-schedule"};
  std::unique_ptr<test::PostgresServer> server_;  // of postgres
  Deployment deployment_;                         // of the others
  std::string url_;
  std::map<std::string, std::unique_ptr<test::Process>> nodes_;
  std::map<std::string, double> costs_;
  std::map<std::string, double> largest_;
};

}  // namespace baton::bench
