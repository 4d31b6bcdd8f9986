#pragma once

#include <vector>

#include "harness/report.h"
#include "harness/slices.h"

namespace baton::bench {

// A row starts the servers it needs.
using RowOptions = SliceOptions;

std::vector<Figure> advisory_many_callers(const RowOptions& options);
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
