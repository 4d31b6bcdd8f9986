#include "harness.h"
#include "store/etcd/etcd_store.h"
#include "support/etcd_server.h"

namespace baton::test {
namespace {

// A server of its own, and a prefix for every store.
class EtcdFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    return store::open_etcd_store({.url = server_.url("/test-" + std::to_string(++stores_)),
                                   .now = [time] { return time->now(); },
                                   .least_lease = std::chrono::minutes(10),
                                   .revoke_at_end = true},
                                  soon())
        .value();
  }
  [[nodiscard]] int model_sequences() const override { return 300; }

 private:
  EtcdServer server_;
  int stores_ = 0;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<EtcdFactory>(); }

}  // namespace baton::test
