// From asking for a lock to having it: at once, or by a place in the queue and a claim.

#include <algorithm>
#include <limits>

#include "core/apply.h"
#include "core/settle.h"
#include "store/postgres_advisory/answers.h"
#include "store/postgres_advisory/verbs.h"

namespace baton::store::postgres_advisory {
namespace {

bool is_superseded(const Note& note, std::optional<std::int64_t> if_below) {
  return if_below && note.ordinal >= *if_below;
}

core::Claimant claimant_of(const Request& request) {
  core::Claimant claimant = core::claimant_of(request);
  claimant.mode = request.targets[0].mode;
  return claimant;
}

LockRef lock_of(const Request& request, std::int64_t lock_key) {
  return {lock_key, request.targets[0].key, request.grant, request.targets[0].mode};
}

Millis millis_up(StoreTime time) { return std::chrono::ceil<Millis>(std::max(time, StoreTime{0})); }

// A grant that was released and is only kept for its at_least_for.
bool is_parked(const ServerView& seen, GrantId grant) {
  return std::any_of(seen.holders.begin(), seen.holders.end(), [&](const auto& other) {
    return other.holder.grant == grant && other.holder.state == HolderState::parked;
  });
}

// `Begun` of what is answered already.
template <typename Begun>
Result<Begun> answered(Result<Reply> reply) {
  if (!reply) return reply.error();
  return Begun(std::move(*reply));
}

}  // namespace

Reply Verbs::obstacle(const Request& request, const ServerView& seen) const {
  const std::string& key = request.targets[0].key;
  const StoreTime now = grants_.now();
  core::NameState state = grants_.table().name_state(key, seen);
  const GrantEntry* own = grants_.table().find(key, request.grant);
  const auto blockers = core::blockers_of(state, request.grant, request.targets[0].mode,
                                          own != nullptr ? own->turn : core::kLastTurn);
  core::NameState in_the_way;
  StoreTime ends = StoreTime::max();
  for (const core::Holder* holder : blockers.holders) {
    ends = std::min(ends, holder->expires);
    if (in_the_way.holders.size() < kMaxHoldersShown) in_the_way.holders.push_back(*holder);
  }
  // Holders count first: while one is in the way, a waiter that goes changes nothing.
  if (blockers.holders.empty()) {
    for (const core::Waiter* waiter : blockers.waiters) ends = std::min(ends, waiter->stale);
  }
  Reply reply = outcome(blockers.none() ? Outcome::granted : Outcome::busy);
  reply.holders = core::describe(key, in_the_way, now, 0).holders;
  if (!blockers.none()) reply.retry_after = millis_up(ends - now);
  return reply;
}

std::vector<Result<Reply>> Verbs::acquire(std::span<const Request* const> requests) {
  std::vector<Result<Begun>> begun;
  for (const Request* request : requests) {
    begun.push_back(BootClock::now() < send_by_ ? begin_acquire(*request) : too_late());
  }
  std::vector<Result<Reply>> replies;
  std::vector<const Request*> refused;
  std::vector<std::size_t> places;
  for (auto& one : begun) {
    auto reply = finish_acquire(std::move(one));
    if (reply && !*reply) {
      refused.push_back(requests[replies.size()]);
      grants_.table().mark_busy(refused.back()->targets[0].key);
      places.push_back(replies.size());
    }
    replies.push_back(reply ? Result<Reply>(reply->value_or(Reply{})) : reply.error());
  }
  if (refused.empty()) return replies;
  const auto looked = look_at(refused);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    Result<Reply>& reply = replies[places[i]];
    if (!looked || BootClock::now() >= send_by_) {
      reply = looked ? too_late() : looked.error();
      continue;
    }
    auto second = finish_acquire(begin_acquire(*refused[i]));
    reply = second ? Result<Reply>(second->value_or(outcome(Outcome::busy))) : second.error();
  }
  return replies;
}

// Fast path: of a name that may be free, the take itself finds out whether it is. Only one that is
// refused is looked at.
bool Verbs::goes_unseen(const Request& request) const {
  const std::string& key = request.targets[0].key;
  return request.verb == Verb::acquire && !seen_.contains(key) && grants_.table().may_be_free(key);
}

Result<Verbs::Begun> Verbs::begin_acquire(const Request& request) {
  const std::string& key = request.targets[0].key;
  if (goes_unseen(request)) return begin_take(request, false);
  auto refusal = denied(request);
  if (!refusal) return refusal.error();
  if (*refusal) return Begun(**refusal);
  settle(key);
  for (const auto& tombstone : grants_.table().at(key).tombstones) {
    if (tombstone.grant == request.grant) return Begun(lost("cancelled before it arrived"));
  }
  GrantEntry* entry = grants_.table().find(key, request.grant);
  if (entry != nullptr && entry->holds) return answered<Begun>(take_again(*entry, request));
  auto now = seen(key);
  if (!now) return now.error();
  if (is_parked(**now, request.grant)) return Begun(lost("the grant has ended"));
  if (is_superseded((*now)->note, request.if_ordinal_below)) {
    const auto own = superseded_itself(request, **now);
    if (!own) return own.error();
    if (!*own) return answered<Begun>(superseded(entry));
    Request again = request;
    again.if_ordinal_below = *request.change.ordinal + 1;
    return begin_acquire(again);
  }
  Reply blocked = obstacle(request, **now);
  if (blocked.outcome == Outcome::busy || entry != nullptr) {
    return answered<Begun>(wait(request, **now, std::move(blocked)));
  }
  grants_.table().mark_free(key);
  return begin_take(request, true);
}

Result<Verbs::Begun> Verbs::begin_take(const Request& request, bool looked) {
  auto with = session();
  if (!with) return with.error();
  const std::string& key = request.targets[0].key;
  changed(key);
  auto asked =
      grants_.begin_take(lock_of(request, lock_key_of(settings_, key)), claimant_of(request),
                         version_of(request), std::move(*with), deadline_);
  if (!asked) return asked.error();
  return Begun(Taking{request, std::move(*asked), looked});
}

// Nothing if it was refused and nobody has looked why.
Result<std::optional<Reply>> Verbs::finish_acquire(Result<Begun> begun) {
  if (!begun) return begun.error();
  if (Reply* reply = std::get_if<Reply>(&*begun)) return std::optional(std::move(*reply));
  auto& [request, asked, looked] = std::get<Taking>(*begun);
  const std::string& key = request.targets[0].key;
  const auto term = grants_.finish_take(std::move(asked), deadline_);
  if (!term) return term.error();
  if (term->took == Took::taken) {
    return std::optional(granted(*grants_.table().find(key, request.grant), term->note));
  }
  if (!looked) return std::optional<Reply>();
  if (term->took == Took::superseded) return std::optional(outcome(Outcome::superseded));
  if (term->took == Took::denied) {
    return std::optional(outcome(Outcome::denied, "the store has another schema version"));
  }
  // Somebody was faster, or is not over yet.
  const auto now = seen(key);
  if (!now) return now.error();
  Reply blocked = obstacle(request, **now);
  if (blocked.outcome != Outcome::busy) {
    blocked.outcome = Outcome::busy;
    blocked.retry_after = Millis(1);
  }
  auto waits = wait(request, **now, std::move(blocked));
  if (!waits) return waits.error();
  return std::optional(std::move(*waits));
}

// Queues up, or keeps its place, or answers busy.
Result<Reply> Verbs::wait(const Request& request, const ServerView& seen, Reply blocked) {
  blocked.outcome = Outcome::busy;
  if (request.queue_ttl <= Millis{0}) return blocked;
  const std::string& key = request.targets[0].key;
  if (GrantEntry* entry = grants_.table().find(key, request.grant)) {
    entry->stale = grants_.now() + StoreTime(request.queue_ttl);
  } else {
    if (grants_.table().waiting() >= settings_.max_waiters) return blocked;
    auto with = session();
    if (!with) return with.error();
    const auto lock_key = seen.lock_key;
    if (auto queued =
            grants_.queue_up(lock_of(request, lock_key), claimant_of(request), request.queue_ttl,
                             request.claim_within, std::move(*with), deadline_);
        !queued) {
      return queued.error();
    }
    changed(key);
  }
  blocked.outcome = Outcome::queued;
  return blocked;
}

// The answer to an acquire of this grant was missing, and it was carried out: note and term are
// written together.
Result<bool> Verbs::superseded_itself(const Request& request, const ServerView& seen) {
  const auto ordinal = request.change.ordinal;
  if (!ordinal || *ordinal != seen.note.ordinal ||
      *ordinal == std::numeric_limits<std::int64_t>::max() || !grants_.may_have_written(request)) {
    return false;
  }
  return queries_.has_term(lock_of(request, seen.lock_key), deadline_);
}

Result<Reply> Verbs::superseded(GrantEntry* entry) {
  if (entry != nullptr) {
    const std::string key = entry->lock.key;
    if (auto ended = grants_.end(*entry, {}, false, deadline_); !ended) return ended.error();
    changed(key);
    settle(key);
  }
  return outcome(Outcome::superseded);
}

Result<Reply> Verbs::claim(const Request& request) {
  const std::string& key = request.targets[0].key;
  if (!is_handed(request)) {
    auto refusal = denied(request);
    if (!refusal) return refusal.error();
    if (*refusal) return **refusal;
  }
  settle(key);
  GrantEntry* entry = grants_.table().find(key, request.grant);
  if (entry != nullptr && entry->holds) return take_again(*entry, request);
  const auto now = seen(key);
  if (!now) return now.error();
  if (is_parked(**now, request.grant)) return lost("the grant has ended");
  if (entry == nullptr) return gone(request, "no longer in the queue");
  if (is_superseded((*now)->note, entry->holder.if_ordinal_below)) return superseded(entry);
  if (request.queue_ttl > Millis{0}) entry->stale = grants_.now() + StoreTime(request.queue_ttl);
  Reply blocked = obstacle(request, **now);
  blocked.outcome = Outcome::queued;
  return blocked;
}

// The grant is there: a waiter comes for it, or a request is repeated. Either way its time starts
// again, so that `granted` always means a full ttl from when this request was sent.
Result<Reply> Verbs::take_again(GrantEntry& entry, const Request& request) {
  if (entry.holder.revoked) return lost("revoked: " + entry.holder.reason);
  if (entry.holder.state == HolderState::handed) return claim_handed(entry, request);
  return beat(entry);
}

Result<Reply> Verbs::claim_handed(GrantEntry& entry, const Request& request) {
  const auto term =
      entry.session->claim(entry.lock, entry.holder, version_of(request), grants_.at(),
                           grants_.patience(deadline_, Session::CallKind::to_write, true));
  changed(entry.lock.key);
  if (!term) {
    if (!entry.session->usable()) grants_.lose(entry, term.error().message);
    return term.error();
  }
  switch (term->took) {
    case Took::taken: break;
    case Took::superseded: return superseded(&entry);
    case Took::denied: return outcome(Outcome::denied, "the store has another schema version");
    case Took::revoked:
      entry.holder.revoked = true;
      entry.holder.reason = term->reason;
      return lost("revoked: " + term->reason);
    default: {
      if (auto ended = grants_.end(entry, {}, false, deadline_); !ended) return ended.error();
      return lost("the grant has ended");
    }
  }
  entry.holder.state = HolderState::held;
  entry.holder.since = grants_.now();
  entry.holder.expires = first_expiry(entry.holder, grants_.now());
  return granted(entry, term->note);
}

}  // namespace baton::store::postgres_advisory
