// A lock on etcd against one create, and passing it on against one watch event. The server flushes
// to a real disk.

#include "stores/etcd_floor.h"
#include "stores/lock_steps.h"
#include "stores/paired_samples.h"
#include "support/etcd_server.h"

namespace baton::bench {

std::vector<Figure> etcd_acquire(const RowOptions& options) {
  const test::EtcdServer server({.on_disk = true});
  FreshNames names(server.url());
  EtcdFloor floor(server.endpoint());
  const auto slices = sample_in_turns(
      options, [&] { return names.acquire(); }, [&] { return floor.create(); });
  return {
      compare("etcd-acquire", "etcd, uncontended acquire, against one create", 0.5, 1.3, slices)};
}

std::vector<Figure> etcd_handover(const RowOptions& options) {
  const test::EtcdServer server({.on_disk = true});
  Relay relay(server.url());
  EtcdFloor floor(server.endpoint());
  const auto slices = sample_in_turns(
      options, [&] { return relay.hand_over(); }, [&] { return floor.event(); });
  return {
      compare("etcd-handover", "etcd, hand-over, median, against a watch event", 0.5, 3, slices),
      compare("etcd-handover", "etcd, hand-over, 95%, against a watch event", 0.95, 6, slices)};
}

}  // namespace baton::bench
