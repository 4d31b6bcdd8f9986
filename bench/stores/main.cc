// What locks cost on each store with a server, each row against a floor measured in the same run;
// and how long they have no holder after a fault. harness/program.h says how it is called.

#include "harness/program.h"
#include "stores/rows.h"

int main(int argc, char** argv) {
  using namespace baton::bench;
  const Program program{.name = "bench_stores",
                        .rows = {
#ifdef BATON_HAS_STORE_POSTGRES_ADVISORY
                            {"advisory-64", advisory_many_callers},
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
                        }};
  return run_program(program, {argv + 1, argv + argc});
}
