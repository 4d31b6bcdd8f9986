// A lock on Kubernetes against one create of its Lease, and passing it on against one watch event.

#include "stores/kubernetes_floor.h"
#include "stores/lock_steps.h"
#include "stores/paired_samples.h"

namespace baton::bench {

std::vector<Figure> kubernetes_acquire(const RowOptions& options) {
  test::KubeServer server;
  const std::string space = server.create_namespace();
  FreshNames names(server.store_url("admin", space));
  KubernetesFloor floor(server, space);
  const auto slices = sample_in_turns(
      options, [&] { return names.acquire(); }, [&] { return floor.create(); });
  return {compare("kubernetes-acquire", "Kubernetes, uncontended acquire, against one create", 0.5,
                  1.3, slices)};
}

std::vector<Figure> kubernetes_handover(const RowOptions& options) {
  test::KubeServer server;
  const std::string space = server.create_namespace();
  Relay relay(server.store_url("admin", space));
  // In a namespace of its own: ours hears of no floor, and the floor of nothing of ours.
  KubernetesFloor floor(server, server.create_namespace());
  const auto slices = sample_in_turns(
      options, [&] { return relay.hand_over(); }, [&] { return floor.event(); });
  return {compare("kubernetes-handover", "Kubernetes, hand-over, median, against a watch event",
                  0.5, 3, slices),
          compare("kubernetes-handover", "Kubernetes, hand-over, 95%, against a watch event", 0.95,
                  6, slices)};
}

}  // namespace baton::bench
