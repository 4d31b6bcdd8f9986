#include "election/ranking.h"

#include <charconv>
#include <map>
#include <utility>

#include "core/bad_request.h"
#include "election/leader_monitor.h"
#include "election/waiting.h"

namespace baton::election {
namespace {

constexpr std::string_view kEntrySubject = "leader-candidate";
constexpr std::string_view kEntryPredicate = "standing";
constexpr std::string_view kPriorityKey = "priority";

// A candidate that has just joined is to lead within a second if it preempts.
constexpr Millis kFirstLooks{100};
constexpr Millis kFirstLooksFor{3'000};
constexpr Millis kLookEvery{1'000};

int priority_in(const Metadata& metadata) {
  const auto it = metadata.find(std::string(kPriorityKey));
  if (it == metadata.end()) return 0;
  int priority = 0;
  const char* end = it->second.data() + it->second.size();
  const auto [read, failed] = std::from_chars(it->second.data(), end, priority);
  return failed == std::errc() && read == end ? priority : 0;
}

// The priority of each node that has said one.
Result<std::map<std::string, int>> priorities(LockClient& locks, const LockName& election) {
  std::map<std::string, int> all;
  Query query;
  query.region = election.region;
  query.subject = std::string(kEntrySubject);
  query.resources = election.resources;
  do {
    auto page = locks.find(query, kLookTimeout);
    if (!page) return page.error();
    for (const LockInfo& info : page->items) {
      // The election `views` must not see the candidates of `views/orders`.
      const auto name = parse_key(info.key);
      if (!name || name->resources.size() != election.resources.size() + 1) continue;
      for (const HolderInfo& holder : info.holders) {
        if (!holder.released) all[holder.owner] = priority_in(holder.metadata);
      }
    }
    query.after = page->next;
  } while (!query.after.empty());
  return all;
}

}  // namespace

Ranking::Ranking(LockClient locks, const ElectorOptions& options, Clock& clock)
    : locks_(std::move(locks)), options_(options), clock_(clock) {}

Result<void> Ranking::check() const {
  if (!options_.priority) {
    if (options_.preempt) return bad_request("an elector that preempts needs a priority");
    return {};
  }
  if (auto ok = can_transfer(locks_); !ok) {
    return Error{.code = Code::unsupported,
                 .message =
                     "candidates cannot have priorities on this store: it does not hand "
                     "over to a named node"};
  }
  return {};
}

void Ranking::start(const LockName& election) {
  if (!options_.priority) return;
  election_ = election;
  entry_name_ = {.subject = std::string(kEntrySubject),
                 .predicate = std::string(kEntryPredicate),
                 .resources = election.resources,
                 .region = election.region};
  entry_name_.resources.push_back(to_string(new_grant_id()));
  thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

void Ranking::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    signal_.notify_all();
  }
  thread_.join();
}

Metadata Ranking::metadata() const {
  Metadata all = options_.metadata;
  if (options_.priority) all[std::string(kPriorityKey)] = std::to_string(*options_.priority);
  return all;
}

std::optional<Ranking::Best> Ranking::best_waiting() {
  if (!options_.priority) return std::nullopt;
  const auto info = locks_.get(election_, kLookTimeout);
  if (!info || info->waiters.empty()) return std::nullopt;
  const auto said = priorities(locks_, election_);
  if (!said) return std::nullopt;
  std::optional<Best> best;
  for (const WaiterInfo& waiter : info->waiters) {
    const auto it = said->find(waiter.owner);
    const int priority = it == said->end() ? 0 : it->second;
    if (!best || priority > best->priority) best = Best{waiter.owner, priority};
  }
  return best;
}

std::optional<std::string> Ranking::outranked_by() {
  auto best = best_waiting();
  if (!best || best->priority <= *options_.priority) return std::nullopt;
  return std::move(best->node);
}

void Ranking::loop(const std::stop_token& stop) {
  const Instant joined = clock_.now();
  while (!stop.stop_requested()) {
    keep_entry();
    if (options_.preempt && may_preempt_) take_over();
    const Instant now = clock_.now();
    const Instant next = now + (now < joined + kFirstLooksFor ? kFirstLooks : kLookEvery);
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested() && clock_.now() < next) clock_.wait(lock, signal_, next);
  }
  entry_.reset();
}

void Ranking::keep_entry() {
  if (entry_ && entry_->valid()) return;
  entry_.reset();
  auto lease = locks_.acquire(entry_name_, {.ttl = options_.ttl, .metadata = metadata()});
  if (lease) entry_ = std::move(*lease);
}

// Ignores errors, because the next look tries again.
void Ranking::take_over() {
  const auto leader = leader_of(locks_, election_, kLookTimeout);
  if (!leader || !*leader || (*leader)->leaving || (*leader)->node == locks_.owner()) return;
  if (priority_in((*leader)->metadata) >= *options_.priority) return;
  const auto best = best_waiting();
  if (!best || best->node != locks_.owner()) return;
  (void)transfer_leader(locks_, election_, locks_.owner());
}

}  // namespace baton::election
