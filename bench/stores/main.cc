// What locks cost on each store with a server, each row against a floor measured in the same run.
//
//   bench_stores [--json] [--rows REGEX] [--slices N]
//
// Exits with 1 if a target is missed, with 2 if something could not be measured.

#include <cstdio>
#include <exception>
#include <regex>

#include "harness/machine.h"
#include "stores/rows.h"

namespace baton::bench {
namespace {

struct Options {
  bool json = false;
  std::regex rows{""};
  RowOptions row;
};

const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows{
#ifdef BATON_HAS_STORE_POSTGRES_ADVISORY
      {"advisory-failover", advisory_failover},
#endif
#ifdef BATON_HAS_STORE_REDIS
      {"redis-1", redis_one_caller},
      {"redis-64", redis_many_callers},
#endif
#ifdef BATON_HAS_STORE_ETCD
      {"etcd-acquire", etcd_acquire},
      {"etcd-handover", etcd_handover},
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
      {"kubernetes-acquire", kubernetes_acquire},
      {"kubernetes-handover", kubernetes_handover},
#endif
#ifdef BATON_HAS_STORE_SQLITE
      {"failover-sqlite", failover_sqlite},
#endif
#ifdef BATON_HAS_STORE_POSTGRES
      {"failover-postgres", failover_postgres},
#endif
#ifdef BATON_HAS_STORE_POSTGRES_ADVISORY
      {"failover-postgres-advisory", failover_postgres_advisory},
#endif
#ifdef BATON_HAS_STORE_REDIS
      {"failover-redis", failover_redis},
#endif
#ifdef BATON_HAS_STORE_ETCD
      {"failover-etcd", failover_etcd},
#endif
#ifdef BATON_HAS_STORE_KUBERNETES
      {"failover-kubernetes", failover_kubernetes},
#endif
  };
  return rows;
}

int usage() {
  std::fprintf(stderr, "usage: bench_stores [--json] [--rows REGEX] [--slices N]\nrows:");
  for (const Row& row : all_rows()) std::fprintf(stderr, " %s", row.name.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

bool parse(const std::vector<std::string>& words, Options& options) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--json") {
      options.json = true;
    } else if (words[i] == "--rows" && has_value) {
      options.rows = std::regex(words[++i]);
    } else if (words[i] == "--slices" && has_value) {
      options.row.slices = std::max(1, std::stoi(words[++i]));
    } else {
      return false;
    }
  }
  return true;
}

int run(const Options& options) {
  Report report;
  report.setting = {{"machine", describe_machine()},
                    {"slices", std::to_string(options.row.slices) + " of " +
                                   std::to_string(options.row.slice.count()) + " ms, paired"}};
  for (const Row& row : all_rows()) {
    if (!std::regex_search(row.name, options.rows)) continue;
    std::fprintf(stderr, "measuring %s\n", row.name.c_str());
    for (Figure& figure : row.measure(options.row)) report.figures.push_back(std::move(figure));
  }
  std::fputs((options.json ? as_json(report) : as_table(report)).c_str(), stdout);
  return report.all_met() ? 0 : 1;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  using namespace baton::bench;
  try {
    Options options;
    return parse({argv + 1, argv + argc}, options) ? run(options) : usage();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_stores: %s\n", problem.what());
    return 2;
  }
}
