#include "store/etcd/etcd_store.h"

#include <algorithm>
#include <atomic>

#include "store/common/document_loop.h"
#include "store/etcd/documents.h"
#include "store/etcd/watcher.h"

namespace baton::store {
namespace {

using namespace etcd;
using core::StoreTime;

// A transaction has at most 128 operations, and a new hold needs two: its document and its mark.
constexpr std::size_t kNamesPerWrite = 62;
constexpr Millis kGoodbye{500};
// The longest that a request may spend on clearing up for others: less than a TTL of one second can
// spare.
constexpr Millis kTidyLimit{200};
constexpr Millis kTidyPause{1000};  // after one that failed

// Such requests write nothing, so that what earlier ones have left need not be out of the way
// first, and they must go on while etcd answers but takes no writes.
bool only_reads(std::span<const Request> batch) {
  return std::ranges::all_of(batch, [](const Request& request) {
    return request.verb == Verb::get || (request.verb == Verb::renew && request.change.empty());
  });
}

StoreTime boot_time() { return std::chrono::floor<StoreTime>(BootClock::now().time_since_epoch()); }

class EtcdStore final : public LockStore {
 public:
  EtcdStore(Settings settings, EtcdOptions options)
      : sweep_every_(options.sweep_every),
        next_sweep_(BootClock::now() + sweep_every_),
        apply_limit_(settings.apply_limit),
        layout_(settings.prefix),
        revoke_at_end_(options.revoke_at_end),
        gateway_(std::move(settings)),
        leases_(gateway_, options.least_lease),
        documents_(gateway_, leases_, layout_,
                   {.now = options.now ? std::move(options.now) : boot_time}) {}

  // Leases that nothing hangs on any more need not wait for their end.
  ~EtcdStore() override {
    if (!revoke_at_end_ && !documents_.own().empty()) return;
    const Deadline deadline = BootClock::now() + kGoodbye;
    for (const LeaseId lease : leases_.all()) {
      [[maybe_unused]] const auto ended = gateway_.revoke_lease(lease, deadline);
    }
  }
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  [[nodiscard]] Result<void> open(Deadline deadline) {
    const auto answer = gateway_.range(layout_.document("."), "", 1, deadline);
    return answer ? Result<void>() : answer.error();
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    deadline = bounded(deadline);
    const bool clear_up_later = only_reads(batch);
    if (!clear_up_later) {
      if (auto cleared = documents_.clear_up(deadline); !cleared) return cleared.error();
    }
    std::vector<std::string> keys;
    for (const Request& request : batch) {
      for (const Target& target : request.targets) keys.push_back(target.key);
    }
    Result<std::vector<Reply>> replies = [&] {
      const OwnGrants::Use use(documents_.own(), keys);
      return loop_.apply(batch, deadline);
    }();
    if (replies && clear_up_later) clear_up_if_possible(deadline);
    if (replies) sweep_now_and_then(deadline);
    return replies;
  }

  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return documents_.find(query, bounded(deadline));
  }

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return watcher_.watch(channel, sink);
  }

  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can;
    can.min_ttl = Millis(1000);
    can.apply_limit = apply_limit_;
    can.parallel = 2;
    can.clock = "etcd's leases; this process's own grants also by CLOCK_BOOTTIME";
    return can;
  }

 private:
  [[nodiscard]] Deadline bounded(Deadline deadline) const {
    return std::min(deadline, BootClock::now() + BootClock::duration(apply_limit_));
  }

  // The next write reports the error.
  void clear_up_if_possible(Deadline deadline) {
    const Instant now = BootClock::now();
    if (now < next_try_.load()) return;
    if (documents_.clear_up(std::min(deadline, now + kTidyLimit))) return;
    next_try_ = BootClock::now() + kTidyPause;
  }

  // Paid for by a caller now and then, as there is no thread that has nothing else to do.
  void sweep_now_and_then(Deadline deadline) {
    const Instant now = BootClock::now();
    Instant due = next_sweep_.load();
    if (now < due || !next_sweep_.compare_exchange_strong(due, now + sweep_every_)) return;
    documents_.sweep(std::min(deadline, now + kTidyLimit));
  }

  const Millis sweep_every_;
  std::atomic<Instant> next_sweep_;
  std::atomic<Instant> next_try_{Instant{}};  // to clear up
  const Millis apply_limit_;
  const Layout layout_;
  const bool revoke_at_end_;
  Gateway gateway_;
  Leases leases_;
  EtcdDocuments documents_;
  DocumentLoop loop_{documents_, {.max_set = kMaxSet, .names_per_write = kNamesPerWrite}};
  Watcher watcher_{gateway_, layout_, documents_.subscribers(),
                   [this](const std::string& key, const std::string& text, Revision version) {
                     documents_.believe(key, text, version);
                   }};
};

}  // namespace

Result<std::unique_ptr<LockStore>> open_etcd_store(EtcdOptions options, Deadline deadline) {
  auto settings = parse_settings(options.url);
  if (!settings) return settings.error();
  auto store = std::make_unique<EtcdStore>(std::move(*settings), std::move(options));
  if (auto opened = store->open(deadline); !opened) return opened.error();
  return std::unique_ptr<LockStore>(std::move(store));
}

}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<LockStore>> open_etcd_store(std::string_view url, Deadline deadline) {
  return store::open_etcd_store(store::EtcdOptions{.url = std::string(url)}, deadline);
}

}  // namespace baton
