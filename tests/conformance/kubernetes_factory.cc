#include <stdexcept>

#include "baton/kubernetes_store.h"
#include "harness.h"
#include "json/json.h"
#include "store/kubernetes/kubernetes_store.h"
#include "store/kubernetes/object_name.h"
#include "support/kube_server.h"

namespace baton::test {
namespace {

// A namespace of its own for each store. The test's time is the observer's clock.
class KubernetesFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    space_ = server_.create_namespace();
    return store::open_kubernetes_store_with(
               {.url = server_.store_url("admin", space_), .now = [time] { return time->now(); }},
               soon())
        .value();
  }
  bool damage(const std::string& key, const std::string& text) override {
    const std::string path = "/apis/coordination.k8s.io/v1/namespaces/" + space_ + "/leases/" +
                             store::kubernetes::object_name(key);
    auto lease = parse_json_or_throw(server_.call("GET", path).body);
    lease["metadata"]["annotations"]["baton/document"] = text;
    const auto put = server_.call("PUT", path, lease.dump());
    if (!put.ok()) throw std::runtime_error(put.body);
    return true;
  }
  std::unique_ptr<StoreAdmin> admin() override {
    return open_kubernetes_admin(server_.store_url("admin", space_), soon()).value();
  }
  [[nodiscard]] int model_sequences() const override { return 200; }

 private:
  KubeServer server_;
  std::string space_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<KubernetesFactory>(); }

}  // namespace baton::test
