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

}  // namespace baton::bench
