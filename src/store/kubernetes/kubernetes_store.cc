#include "store/kubernetes/kubernetes_store.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "core/apply.h"
#include "store/common/document_loop.h"
#include "store/common/subscribers.h"
#include "store/kubernetes/find.h"
#include "store/kubernetes/interest.h"
#include "store/kubernetes/key_locks.h"
#include "store/kubernetes/listener.h"
#include "store/kubernetes/name_documents.h"

namespace baton::store {
namespace {

using namespace kubernetes;  // NOLINT(google-build-using-namespace): its own parts

constexpr std::size_t kLanes = 8;  // requests of one batch that are under way at once
constexpr std::size_t kMaxWaiters = 500;
constexpr std::ptrdiff_t kNearTheHead = 4;
constexpr Millis kSweepLimit{20'000};

Reply reply_of(Outcome outcome, std::string message) {
  Reply reply;
  reply.outcome = outcome;
  reply.message = std::move(message);
  return reply;
}

bool depends_on_schema(const Request& request) {
  return request.verb == Verb::acquire || request.verb == Verb::claim;
}

// The most bytes of the annotation that a waiter takes.
std::size_t room_for(const Request& request) {
  std::size_t bytes = 512 + 2 * (request.predicate.size() + request.owner.size());
  for (const auto& [name, value] : request.metadata) bytes += 2 * (name.size() + value.size()) + 8;
  return bytes + 2 * request.change.text.value_or("").size();
}

// Those that would overfill the queue are not queued: to them the name is busy, and they may ask
// again.
void keep_within_limits(std::vector<Request>& requests, const CachedName* known) {
  const std::size_t taken = known == nullptr ? 0 : known->lease.document.size();
  std::size_t waiters = known == nullptr ? 0 : known->state.waiters.size();
  std::size_t room = kMaxDocument - std::min(taken, kMaxDocument);
  for (Request& request : requests) {
    if (request.verb != Verb::acquire || request.queue_ttl <= Millis{0}) continue;
    const bool waits =
        known != nullptr && std::any_of(known->state.waiters.begin(), known->state.waiters.end(),
                                        [&](const auto& w) { return w.grant == request.grant; });
    if (waits) continue;
    const std::size_t needed = room_for(request);
    if (waiters >= kMaxWaiters || room < needed) {
      request.queue_ttl = Millis{0};
      continue;
    }
    ++waiters;
    room -= needed;
  }
}

// The requests of a batch that are for one name, in their order.
struct NameBatch {
  std::vector<std::size_t> places;
  std::vector<Request> requests;
  Result<std::vector<Reply>> replies{std::vector<Reply>{}};
};

class KubernetesStore final : public LockStore {
 public:
  KubernetesStore(const Cluster& cluster, Clocks clocks)
      : api_(cluster, std::move(clocks)),
        schema_(api_),
        listener_(
            api_, [this](const WatchEvent& event) { heard(event); },
            [this] { (void)sweep_locks(api_, cache_, BootClock::now() + kSweepLimit); }) {}

  Result<void> open(Deadline deadline) {
    const auto version = schema_.ask(deadline);
    return version ? Result<void>() : version.error();
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override;

  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return find_locks(api_, cache_, query, deadline);
  }

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return subscribers_->add(channel, sink);
  }

  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can;
    can.max_set = 1;
    can.max_waiters = kMaxWaiters;
    can.min_ttl = Millis(1000);
    can.parallel = kLanes;
    can.clock = "each client's own (CLOCK_BOOTTIME), from when it saw a record";
    return can;
  }

 private:
  [[nodiscard]] Result<std::vector<Reply>> run(const std::string& key, NameBatch& part,
                                               Deadline deadline);
  [[nodiscard]] Result<void> check_schema(const NameBatch& part, DocumentLoop& loop,
                                          std::int64_t seen, std::vector<Reply>& replies,
                                          Deadline deadline);
  void follow_or_not(const std::string& key, const NameBatch& part,
                     const std::vector<Reply>& replies);
  void heard(const WatchEvent& event);
  void wake(const std::vector<core::Wake>& wakes) {
    for (const core::Wake& wake : wakes) subscribers_->wake(wake.channel, {&wake.grant, 1});
  }

  LeaseApi api_;
  NameCache cache_;
  SchemaVersion schema_;
  KeyLocks key_locks_;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
  Interest interest_;
  Listener listener_;
};

Interest::Place place_of(const Request& request, Outcome outcome, const CachedName* known) {
  if (outcome == Outcome::granted) return Interest::Place::near;
  if (outcome != Outcome::queued || known == nullptr) return Interest::Place::none;
  const auto& waiters = known->state.waiters;
  const auto ahead = std::find_if(waiters.begin(), waiters.end(), [&](const core::Waiter& waiter) {
    return waiter.grant == request.grant;
  });
  const bool crowd = ahead != waiters.end() && ahead - waiters.begin() >= kNearTheHead;
  return crowd ? Interest::Place::far : Interest::Place::near;
}

// Wakes the waiters of this process: something has changed that may let them go on.
bool is_doubtful(const NameBatch& part) {
  return part.replies.error().in_doubt &&
         std::any_of(part.requests.begin(), part.requests.end(), [](const Request& request) {
           const bool repeatable = request.verb == Verb::renew || request.verb == Verb::claim;
           return request.verb != Verb::get && !(repeatable && request.change.empty());
         });
}

// One bad name must not harm the others: where nothing has happened, it may be asked again. But
// what may have happened all the same can only be said for the whole batch.
Result<std::vector<Reply>> gather(std::map<std::string, NameBatch>& parts,
                                  std::vector<Reply> replies) {
  const Error* failure = nullptr;
  std::size_t asked = 0;
  bool some_went_well = false;
  bool doubtful = false;
  for (const auto& [key, part] : parts) {
    asked += part.places.size();
    if (part.replies) {
      some_went_well = true;
    } else if (failure == nullptr || is_doubtful(part)) {
      failure = &part.replies.error();
      doubtful = doubtful || is_doubtful(part);
    }
  }
  some_went_well = some_went_well || asked < replies.size();
  if (failure != nullptr && (doubtful || !some_went_well)) return *failure;
  for (auto& [key, part] : parts) {
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      replies[part.places[i]] = part.replies
                                    ? std::move((*part.replies)[i])
                                    : reply_of(Outcome::busy, part.replies.error().message);
    }
  }
  return replies;
}

Result<std::vector<Reply>> KubernetesStore::apply(std::span<const Request> batch,
                                                  Deadline deadline) {
  const Capabilities can = capabilities();
  deadline = std::min<Deadline>(deadline, BootClock::now() + can.apply_limit);
  std::vector<Reply> replies(batch.size());
  std::map<std::string, NameBatch> parts;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (auto rule = core::broken_rule(batch[i])) {
      replies[i] = reply_of(Outcome::invalid, std::move(*rule));
    } else if (auto beyond = core::beyond(can, batch[i])) {
      replies[i] = reply_of(Outcome::unsupported, std::move(*beyond));
    } else {
      NameBatch& part = parts[batch[i].targets[0].key];
      part.places.push_back(i);
      part.requests.push_back(batch[i]);
    }
  }
  std::vector<std::pair<const std::string, NameBatch>*> work;
  for (auto& part : parts) work.push_back(&part);
  std::atomic<std::size_t> next{0};
  const auto help = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      work[i]->second.replies = run(work[i]->first, work[i]->second, deadline);
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(kLanes, work.size()); ++i) helpers.emplace_back(help);
    help();
  }
  return gather(parts, std::move(replies));
}

Result<std::vector<Reply>> KubernetesStore::run(const std::string& key, NameBatch& part,
                                                Deadline deadline) {
  // A change of the schema is answered kSchemaLag after it was written; a look at it is not.
  const bool may_change_schema =
      key == core::kSchemaKey &&
      std::any_of(part.requests.begin(), part.requests.end(),
                  [](const Request& request) { return request.verb != Verb::get; });
  const Deadline limit = may_change_schema ? deadline - kSchemaLag : deadline;
  NameDocuments documents(key, api_, cache_, schema_, listener_);
  DocumentLoop loop(documents, {.max_set = 1, .names_per_write = part.requests.size()});
  Result<std::vector<Reply>> replies{std::vector<Reply>{}};
  {
    const auto lock = key_locks_.take(key, limit);
    if (!lock) {
      return Error{.code = Code::unavailable,
                   .message = "others of this process kept '" + key + "' busy",
                   .retryable = true};
    }
    keep_within_limits(part.requests, cache_.get(key).get());
    replies = loop.apply(part.requests, limit);
    if (replies) {
      auto checked = check_schema(part, loop, documents.schema_seen(), *replies, limit);
      if (!checked) replies = checked.error();
    }
  }
  // Without the lock of the key: a sink may be taking its own locks.
  wake(documents.wakes());
  if (replies) follow_or_not(key, part, *replies);
  if (documents.schema_changed()) std::this_thread::sleep_for(kSchemaLag);
  return replies;
}

// A grant counts only if the schema was still the same when it was given.
Result<void> KubernetesStore::check_schema(const NameBatch& part, DocumentLoop& loop,
                                           std::int64_t seen, std::vector<Reply>& replies,
                                           Deadline deadline) {
  std::vector<Request> undo;
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const Outcome outcome = replies[i].outcome;
    const bool gained = outcome == Outcome::granted || outcome == Outcome::queued;
    if (!gained || !depends_on_schema(part.requests[i]) ||
        part.requests[i].targets[0].key == core::kSchemaKey)
      continue;
    Request cancel;
    cancel.verb = Verb::cancel;
    cancel.grant = part.requests[i].grant;
    cancel.targets = part.requests[i].targets;
    undo.push_back(std::move(cancel));
    again.push_back(i);
  }
  if (undo.empty()) return {};
  const auto version = schema_.confirm(deadline);
  if (version && *version == seen) return {};
  Error error{.code = Code::unavailable,
              .message = "the version of the schema could not be read again: repeat the request",
              .retryable = true,
              .in_doubt = true};
  if (!version) {
    error.message += "; " + version.error().message;
    return error;
  }
  const auto undone = loop.apply(undo, deadline);
  if (!undone) return error;
  for (const std::size_t i : again) {
    replies[i] = reply_of(Outcome::denied, "the store has schema version " +
                                               std::to_string(*version) + ", this client " +
                                               std::to_string(part.requests[i].schema_version));
  }
  return {};
}

void KubernetesStore::follow_or_not(const std::string& key, const NameBatch& part,
                                    const std::vector<Reply>& replies) {
  const auto known = cache_.get(key);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const Verb verb = part.requests[i].verb;
    if (verb == Verb::get || verb == Verb::break_) continue;
    const auto advice = interest_.update(
        part.requests[i].grant, place_of(part.requests[i], replies[i].outcome, known.get()));
    if (advice == Interest::Advice::listen) {
      listener_.listen(known == nullptr ? 0 : known->lease.version);
    } else if (advice == Interest::Advice::rest) {
      listener_.rest();
    }
  }
}

void KubernetesStore::heard(const WatchEvent& event) {
  if (event.kind == WatchEvent::Kind::deleted) {
    wake(cache_.heard_of_end(event.name, event.version));
  } else if (event.kind == WatchEvent::Kind::changed) {
    wake(cache_.heard(event.name, event.version, event.wake, event.text, api_.now()));
  }
}

Clocks clocks_of(const KubernetesOptions& options) {
  Clocks clocks{options.now, options.server_time};
  if (!clocks.here) {
    clocks.here = [] {
      return std::chrono::floor<core::StoreTime>(BootClock::now().time_since_epoch());
    };
  }
  return clocks;
}

}  // namespace

Result<std::unique_ptr<LockStore>> open_kubernetes_store_with(const KubernetesOptions& options,
                                                              Deadline deadline) {
  const auto cluster = find_cluster(options.url, options.surroundings);
  if (!cluster) return cluster.error();
  auto store = std::make_unique<KubernetesStore>(*cluster, clocks_of(options));
  if (auto opened = store->open(deadline); !opened) return opened.error();
  return std::unique_ptr<LockStore>(std::move(store));
}

}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<LockStore>> open_kubernetes_store(std::string_view url, Deadline deadline) {
  return store::open_kubernetes_store_with({.url = std::string(url)}, deadline);
}

}  // namespace baton
