#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/report.h"

namespace baton::bench {

struct RowOptions {
  int slices = 7;
  std::chrono::milliseconds slice{1000};
};

// A row starts the servers it needs.
struct Row {
  std::string name;
  std::function<std::vector<Figure>(const RowOptions&)> measure;
};

std::vector<Figure> advisory_failover(const RowOptions& options);
std::vector<Figure> redis_one_caller(const RowOptions& options);
std::vector<Figure> redis_many_callers(const RowOptions& options);
std::vector<Figure> etcd_acquire(const RowOptions& options);
std::vector<Figure> etcd_handover(const RowOptions& options);
std::vector<Figure> kubernetes_acquire(const RowOptions& options);
std::vector<Figure> kubernetes_handover(const RowOptions& options);

// For these, a slice is one sample of each fault.
std::vector<Figure> failover_sqlite(const RowOptions& options);
std::vector<Figure> failover_postgres(const RowOptions& options);
std::vector<Figure> failover_postgres_advisory(const RowOptions& options);
std::vector<Figure> failover_redis(const RowOptions& options);
std::vector<Figure> failover_etcd(const RowOptions& options);
std::vector<Figure> failover_kubernetes(const RowOptions& options);

}  // namespace baton::bench
