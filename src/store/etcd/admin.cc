#include "baton/etcd_store.h"
#include "store/etcd/examine.h"
#include "store/etcd/gateway.h"
#include "store/etcd/layout.h"

namespace baton {
namespace {

namespace etcd = store::etcd;

// Documents say themselves what they are; there is nothing to create.
constexpr int kSchemaVersion = 1;

class EtcdAdmin final : public StoreAdmin {
 public:
  explicit EtcdAdmin(const etcd::Settings& settings) : settings_(settings), gateway_(settings) {}

  Result<StoreStatus> status(Deadline deadline) override {
    StoreStatus status{.kind = "etcd",
                       .location = settings_.location,
                       .schema_version = kSchemaVersion,
                       .schema_expected = kSchemaVersion};
    auto details = gateway_.describe(deadline);
    if (!details) return details.error();
    status.details = std::move(*details);
    return status;
  }

  Result<std::pair<int, int>> migrate(Deadline deadline) override {
    auto found = status(deadline);
    if (!found) return found.error();
    return std::pair{kSchemaVersion, kSchemaVersion};
  }

  Result<void> raise_tokens(Token /*floor*/, Deadline /*deadline*/) override {
    return Error{.code = Code::unsupported,
                 .message =
                     "tokens of etcd are revisions of its store: after a restore, raise the "
                     "revision (etcdutl snapshot restore --bump-revision), or use a new prefix and "
                     "a new fence"};
  }

  Result<std::vector<Finding>> examine(Millis ttl, Deadline deadline) override {
    return etcd::examine(settings_, ttl, deadline);
  }

 private:
  const etcd::Settings settings_;
  etcd::Gateway gateway_;
};

}  // namespace

Result<std::unique_ptr<StoreAdmin>> open_etcd_admin(std::string_view url, Deadline /*deadline*/) {
  auto settings = etcd::parse_settings(url);
  if (!settings) return settings.error();
  return std::unique_ptr<StoreAdmin>(std::make_unique<EtcdAdmin>(*settings));
}

}  // namespace baton
