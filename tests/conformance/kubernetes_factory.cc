#include "harness.h"
#include "store/kubernetes/kubernetes_store.h"
#include "support/kube_server.h"

namespace baton::test {
namespace {

// A namespace of its own for each store. The test's time is the observer's clock.
class KubernetesFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    const std::string space = server_.create_namespace();
    return store::open_kubernetes_store_with(
               {.url = server_.store_url("admin", space), .now = [time] { return time->now(); }},
               soon())
        .value();
  }
  [[nodiscard]] int model_sequences() const override { return 200; }

 private:
  KubeServer server_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<KubernetesFactory>(); }

}  // namespace baton::test
