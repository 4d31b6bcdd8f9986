#include "baton/etcd_store.h"
#include "harness.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/gateway.h"
#include "store/etcd/layout.h"
#include "support/etcd_server.h"

namespace baton::test {
namespace {

// A server of its own, and a prefix for every store.
class EtcdFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    ++stores_;
    return store::open_etcd_store({.url = server_.url(prefix()),
                                   .now = [time] { return time->now(); },
                                   .least_lease = std::chrono::minutes(10),
                                   .revoke_at_end = true},
                                  soon())
        .value();
  }
  bool damage(const std::string& key, const std::string& text) override {
    const auto settings = store::etcd::parse_settings(server_.url(prefix())).value();
    store::etcd::Gateway gateway(settings);
    store::etcd::Txn put;
    put.then.push_back({.what = store::etcd::Op::What::put,
                        .key = store::etcd::Layout(settings.prefix).document(key),
                        .value = text});
    return gateway.txn(put, soon()).value().succeeded;
  }
  std::unique_ptr<StoreAdmin> admin() override {
    return open_etcd_admin(server_.url(prefix()), soon()).value();
  }
  [[nodiscard]] int model_sequences() const override { return 300; }

 private:
  [[nodiscard]] std::string prefix() const { return "/test-" + std::to_string(stores_); }

  EtcdServer server_;
  int stores_ = 0;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<EtcdFactory>(); }

}  // namespace baton::test
