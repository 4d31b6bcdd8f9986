#include "baton/etcd_store.h"
#include "store/common/findings.h"
#include "store/etcd/examine.h"
#include "store/etcd/gateway.h"
#include "store/etcd/layout.h"
#include "store/etcd/record.h"

namespace baton {
namespace {

namespace etcd = store::etcd;

// Documents say themselves what they are; there is nothing to create.
constexpr int kSchemaVersion = 1;

class EtcdAdmin final : public StoreAdmin {
 public:
  EtcdAdmin(std::string url, const etcd::Settings& settings)
      : url_(std::move(url)), settings_(settings), gateway_(settings) {}

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
    auto findings = etcd::examine(settings_, ttl, deadline);
    if (!findings) return findings;
    auto locks = open_etcd_store(url_, deadline);
    if (!locks) return findings;
    if (auto damaged = store::damaged_finding(store::damaged_names(
            [&](const Query& query) { return (*locks)->find(query, deadline); }))) {
      findings->push_back(std::move(*damaged));
      store::worst_first(*findings);
    }
    return findings;
  }

  Result<void> forget_damaged(const std::string& key, Deadline deadline) override {
    const etcd::Layout layout(settings_.prefix);
    const std::string first = layout.document(key);
    const std::string end = layout.document_end(key);
    etcd::Txn look;
    look.then.push_back({.what = etcd::Op::What::range, .key = first, .end = end});
    const auto found = gateway_.txn(look, deadline);
    if (!found) return found.error();
    const auto record = etcd::record_of(layout, {}, found->ranges.at(0));
    if (record->version == 0) return store::nothing_stored(key);
    if (record->damage.empty()) return store::not_damaged(key);
    etcd::Txn remove;
    remove.compares.push_back({.key = first, .revision = record->version});
    remove.then.push_back({.what = etcd::Op::What::erase, .key = first, .end = end});
    const auto removed = gateway_.txn(remove, deadline);
    if (!removed) return removed.error();
    if (!removed->succeeded) return store::changed_meanwhile(key);
    return {};
  }

 private:
  const std::string url_;
  const etcd::Settings settings_;
  etcd::Gateway gateway_;
};

}  // namespace

Result<std::unique_ptr<StoreAdmin>> open_etcd_admin(std::string_view url, Deadline /*deadline*/) {
  auto settings = etcd::parse_settings(url);
  if (!settings) return settings.error();
  return std::unique_ptr<StoreAdmin>(std::make_unique<EtcdAdmin>(std::string(url), *settings));
}

}  // namespace baton
