#include "store/postgres_advisory/verbs.h"

#include <algorithm>

#include "core/apply.h"
#include "core/settle.h"

namespace baton::store::postgres_advisory {
namespace {

using core::HolderState;

Reply outcome(Outcome what, std::string message = {}) {
  Reply reply;
  reply.outcome = what;
  reply.message = std::move(message);
  return reply;
}

Reply lost(std::string why) { return outcome(Outcome::lost, std::move(why)); }

Reply granted(const Entry& entry, Note found) {
  Reply reply = outcome(Outcome::granted);
  reply.tokens = {entry.holder.token};
  reply.note = std::move(found);
  return reply;
}

bool is_superseded(const Note& note, std::optional<std::int64_t> if_below) {
  return if_below && note.ordinal >= *if_below;
}

core::Claimant claimant_of(const Request& request) {
  core::Claimant claimant;
  claimant.grant = request.grant;
  claimant.mode = request.asks[0].mode;
  claimant.ttl = request.ttl;
  claimant.at_least_for = request.at_least_for;
  claimant.if_ordinal_below = request.if_ordinal_below;
  claimant.change = request.change;
  claimant.predicate = request.predicate;
  claimant.owner = request.owner;
  claimant.channel = request.channel;
  claimant.metadata = request.metadata;
  return claimant;
}

std::optional<std::int64_t> version_of(const Request& request) {
  if (request.asks[0].key == core::kSchemaKey) return std::nullopt;
  return request.schema_version;
}

LockOf lock_of(const Request& request, std::int64_t lock_key) {
  return {lock_key, request.asks[0].key, request.grant, request.asks[0].mode};
}

Millis millis_up(StoreTime time) { return std::chrono::ceil<Millis>(std::max(time, StoreTime{0})); }

}  // namespace

bool looks_around(const Request& request) {
  switch (request.verb) {
    case Verb::acquire:
    case Verb::claim:
    case Verb::break_:
    case Verb::get: return true;
    default: return false;
  }
}

void Verbs::give_sessions(std::vector<std::unique_ptr<Session>> sessions,
                          std::optional<Error> shortage) {
  sessions_ = std::move(sessions);
  shortage_ = std::move(shortage);
}

Result<std::unique_ptr<Session>> Verbs::session() {
  if (sessions_.empty() && shortage_) return *shortage_;
  if (sessions_.empty()) {
    // Rare: its grant was still there when the batch began.
    if (auto drawn = grants_.pool().draw(1, sessions_, deadline_); !drawn) return drawn.error();
  }
  auto session = std::move(sessions_.back());
  sessions_.pop_back();
  return session;
}

// Comes for what it was handed: its own session knows all that matters, and it is in a hurry.
bool Verbs::is_handed(const Request& request) const {
  if (request.verb != Verb::claim) return false;
  const Entry* entry = grants_.book().find(request.asks[0].key, request.grant);
  return entry != nullptr && entry->holds && entry->holder.state == HolderState::handed &&
         entry->holder.expires > grants_.now();
}

Result<void> Verbs::look_ahead(std::span<const Request* const> requests) {
  std::vector<std::string> keys;
  for (const Request* request : requests) {
    if (looks_around(*request) && !is_handed(*request)) keys.push_back(request->asks[0].key);
  }
  if (keys.empty()) return {};
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  auto all = control_.look(keys, grants_.now(), grants_.at(), deadline_);
  if (!all) return all.error();
  seen_ = std::move(*all);
  return {};
}

Result<const Seen*> Verbs::seen(const std::string& key) {
  if (const auto known = seen_.find(key); known != seen_.end()) return &known->second;
  auto all = control_.look({key}, grants_.now(), grants_.at(), deadline_);
  if (!all) return all.error();
  return &(seen_[key] = std::move(all->at(key)));
}

Result<std::optional<Reply>> Verbs::denied(const Request& request) {
  const auto version = version_of(request);
  if (!version) return std::optional<Reply>();
  const auto now = seen(request.asks[0].key);
  if (!now) return now.error();
  if ((*now)->schema_version == *version) return std::optional<Reply>();
  return std::optional(outcome(Outcome::denied, "the store has schema version " +
                                                    std::to_string((*now)->schema_version) +
                                                    ", this client " + std::to_string(*version)));
}

// Every look shows the schema's version too.
void Verbs::changed(const std::string& key) {
  if (key == core::kSchemaKey) {
    seen_.clear();
  } else {
    seen_.erase(key);
  }
}

void Verbs::settle(const std::string& key) {
  if (grants_.settle(key, deadline_)) changed(key);
}

Reply Verbs::obstacle(const Request& request, const Seen& seen) const {
  const std::string& key = request.asks[0].key;
  const StoreTime now = grants_.now();
  core::NameState state = grants_.book().picture(key, seen);
  const Entry* own = grants_.book().find(key, request.grant);
  const auto blockers = core::blockers_of(state, request.grant, request.asks[0].mode,
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

Result<Reply> Verbs::apply(const Request& request) {
  switch (request.verb) {
    case Verb::acquire: return acquire(request);
    case Verb::claim: return claim(request);
    case Verb::release: return release(request);
    case Verb::cancel: return cancel(request);
    case Verb::break_: return break_holders(request);
    case Verb::get: return get(request);
    case Verb::renew: {
      const Request* one = &request;
      Reply reply;
      Reply* answer = &reply;
      renew({&one, 1}, {&answer, 1});
      return reply;
    }
    case Verb::convert: break;
  }
  return outcome(Outcome::unsupported, "this store cannot do that");
}

Result<Reply> Verbs::acquire(const Request& request) {
  const std::string& key = request.asks[0].key;
  auto refusal = denied(request);
  if (!refusal) return refusal.error();
  if (*refusal) return **refusal;
  settle(key);
  for (const auto& tombstone : grants_.book().at(key).tombstones) {
    if (tombstone.grant == request.grant) return lost("cancelled before it arrived");
  }
  Entry* entry = grants_.book().find(key, request.grant);
  if (entry != nullptr && entry->holds) return take_again(*entry, request);
  auto now = seen(key);
  if (!now) return now.error();
  for (const auto& other : (*now)->holders) {
    if (other.holder.grant == request.grant && other.holder.state == HolderState::parked) {
      return lost("the grant has ended");
    }
  }
  if (is_superseded((*now)->note, request.if_ordinal_below)) return superseded(entry);
  Reply blocked = obstacle(request, **now);
  if (blocked.outcome == Outcome::busy || entry != nullptr) {
    return wait(request, **now, std::move(blocked));
  }
  auto with = session();
  if (!with) return with.error();
  return take_free(request, std::move(*with));
}

Result<Reply> Verbs::take_free(const Request& request, std::unique_ptr<Session> session) {
  const std::string& key = request.asks[0].key;
  const auto lock_key = seen_.at(key).lock_key;
  changed(key);
  const auto term = grants_.take(lock_of(request, lock_key), claimant_of(request),
                                 version_of(request), std::move(session), deadline_);
  if (!term) return term.error();
  switch (term->took) {
    case Took::taken: return granted(*grants_.book().find(key, request.grant), term->note);
    case Took::superseded: return outcome(Outcome::superseded);
    case Took::denied: return outcome(Outcome::denied, "the store has another schema version");
    default: break;
  }
  // Somebody was faster, or is not over yet.
  const auto now = seen(key);
  if (!now) return now.error();
  Reply blocked = obstacle(request, **now);
  if (blocked.outcome != Outcome::busy) {
    blocked.outcome = Outcome::busy;
    blocked.retry_after = Millis(1);
  }
  return wait(request, **now, std::move(blocked));
}

// Queues up, or keeps its place, or answers busy.
Result<Reply> Verbs::wait(const Request& request, const Seen& seen, Reply blocked) {
  blocked.outcome = Outcome::busy;
  if (request.ticket <= Millis{0}) return blocked;
  const std::string& key = request.asks[0].key;
  if (Entry* entry = grants_.book().find(key, request.grant)) {
    entry->stale = grants_.now() + StoreTime(request.ticket);
  } else {
    if (grants_.book().waiting() >= settings_.max_waiters) return blocked;
    auto with = session();
    if (!with) return with.error();
    const auto lock_key = seen.lock_key;
    if (auto queued =
            grants_.queue_up(lock_of(request, lock_key), claimant_of(request), request.ticket,
                             request.handoff, std::move(*with), deadline_);
        !queued) {
      return queued.error();
    }
    changed(key);
  }
  blocked.outcome = Outcome::queued;
  return blocked;
}

Result<Reply> Verbs::superseded(Entry* entry) {
  if (entry != nullptr) {
    const std::string key = entry->lock.key;
    if (auto ended = grants_.end(*entry, {}, false, deadline_); !ended) return ended.error();
    changed(key);
    settle(key);
  }
  return outcome(Outcome::superseded);
}

Result<Reply> Verbs::claim(const Request& request) {
  const std::string& key = request.asks[0].key;
  if (!is_handed(request)) {
    auto refusal = denied(request);
    if (!refusal) return refusal.error();
    if (*refusal) return **refusal;
  }
  settle(key);
  Entry* entry = grants_.book().find(key, request.grant);
  if (entry != nullptr && entry->holds) return take_again(*entry, request);
  const auto now = seen(key);
  if (!now) return now.error();
  for (const auto& other : (*now)->holders) {
    if (other.holder.grant == request.grant && other.holder.state == HolderState::parked) {
      return lost("the grant has ended");
    }
  }
  if (entry == nullptr) return lost("no longer in the queue");
  if (is_superseded((*now)->note, entry->holder.if_ordinal_below)) return superseded(entry);
  if (request.ticket > Millis{0}) entry->stale = grants_.now() + StoreTime(request.ticket);
  Reply blocked = obstacle(request, **now);
  blocked.outcome = Outcome::queued;
  return blocked;
}

// The grant is there: a waiter comes for it, or a request is repeated. Either way its time starts
// again, so that `granted` always means a full ttl from when this request was sent.
Result<Reply> Verbs::take_again(Entry& entry, const Request& request) {
  if (entry.holder.revoked) return lost("revoked: " + entry.holder.reason);
  if (entry.holder.state == HolderState::handed) return claim_handed(entry, request);
  return beat(entry, {});
}

Result<Reply> Verbs::claim_handed(Entry& entry, const Request& request) {
  const auto term =
      entry.session->claim(entry.lock, entry.holder, version_of(request), grants_.at(), deadline_);
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

Result<Reply> Verbs::beat(Entry& entry, const NoteChange& change) {
  if (auto sent = entry.session->send_beat(entry.lock, change, deadline_); !sent) {
    if (!entry.session->usable()) {
      grants_.lose(entry, sent.error().message);
      return lost(sent.error().message);
    }
    return outcome(Outcome::busy, sent.error().message);
  }
  return after_beat(entry, entry.session->collect_beat(deadline_));
}

Reply Verbs::after_beat(Entry& entry, const Result<Term>& term) {
  if (!term) {
    if (entry.session->usable()) return outcome(Outcome::busy, term.error().message);
    const std::string why = "its session with the server has ended: " + term.error().message;
    grants_.lose(entry, why);
    return lost(why);
  }
  if (term->took == Took::revoked) {
    entry.holder.revoked = true;
    entry.holder.reason = term->reason;
    return lost("revoked: " + term->reason);
  }
  if (term->took != Took::taken) {
    grants_.lose(entry, "the grant has ended");
    return lost("the grant has ended");
  }
  entry.holder.expires =
      std::max(entry.holder.expires, grants_.now() + StoreTime(entry.holder.ttl));
  return granted(entry, term->note);
}

void Verbs::renew(std::span<const Request* const> requests, std::span<Reply*> replies) {
  struct Sent {
    std::string key;
    GrantId grant;
    Reply* reply;
  };
  std::vector<Sent> sent;
  const auto collect = [&] {
    for (const Sent& one : sent) {
      Entry* entry = grants_.book().find(one.key, one.grant);
      *one.reply = after_beat(*entry, entry->session->collect_beat(deadline_));
    }
    sent.clear();
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = *requests[i];
    const std::string& key = request.asks[0].key;
    const bool under_way =
        std::any_of(sent.begin(), sent.end(), [&](const Sent& one) { return one.key == key; });
    if (under_way) collect();
    Entry* entry = grants_.book().find(key, request.grant);
    if (entry == nullptr || !entry->holds || entry->holder.expires <= grants_.now()) {
      *replies[i] = lost(grants_.why_lost(request.grant));
    } else if (entry->holder.revoked) {
      *replies[i] = lost("revoked: " + entry->holder.reason);
    } else if (entry->holder.state == HolderState::handed) {
      *replies[i] = lost("not claimed yet");
    } else if (auto begun = entry->session->send_beat(entry->lock, request.change, deadline_);
               !begun) {
      *replies[i] = after_beat(*entry, begun.error());
    } else {
      sent.push_back({key, request.grant, replies[i]});
    }
    if (!request.change.empty()) changed(key);
  }
  collect();
}

Result<Reply> Verbs::release(const Request& request) {
  const std::string& key = request.asks[0].key;
  settle(key);
  Entry* entry = grants_.book().find(key, request.grant);
  if (entry == nullptr || !entry->holds) return lost(grants_.why_lost(request.grant));
  const core::Holder& holder = entry->holder;
  const bool park = holder.state == HolderState::held &&
                    holder.since + StoreTime(holder.at_least_for) > grants_.now();
  if (auto ended = grants_.end(*entry, request.change, park, deadline_); !ended) {
    return ended.error();
  }
  changed(key);
  settle(key);
  return outcome(Outcome::done);
}

Result<Reply> Verbs::cancel(const Request& request) {
  const std::string& key = request.asks[0].key;
  settle(key);
  if (request.converting) return outcome(Outcome::done);
  if (Entry* entry = grants_.book().find(key, request.grant)) {
    // Nobody ever worked under a grant that is cancelled, so at_least_for does not keep it.
    if (auto ended = grants_.end(*entry, {}, false, deadline_); !ended) return ended.error();
    changed(key);
  }
  if (request.tombstone > Millis{0}) {
    // In this process is enough: no other acts for a grant, and this one's sessions are its own.
    auto& tombstones = grants_.book().at(key).tombstones;
    std::erase_if(tombstones, [&](const auto& t) { return t.grant == request.grant; });
    tombstones.push_back({request.grant, grants_.now() + StoreTime(request.tombstone)});
  }
  settle(key);
  return outcome(Outcome::done);
}

Result<Reply> Verbs::break_holders(const Request& request) {
  const std::string& key = request.asks[0].key;
  settle(key);
  const auto now = seen(key);
  if (!now) return now.error();
  const std::int64_t lock_key = (*now)->lock_key;
  core::NameState state = grants_.book().picture(key, **now);
  std::erase_if(state.holders, [&](const core::Holder& holder) {
    return !request.grant.empty() && holder.grant != request.grant;
  });
  Reply reply = outcome(Outcome::done);
  reply.holders = core::describe(key, state, grants_.now(), 0).holders;
  if (reply.holders.empty()) return reply;
  std::vector<GrantId> grants;
  std::vector<int> pids;
  for (const core::Holder& holder : state.holders) grants.push_back(holder.grant);
  for (const auto& other : (*now)->holders) {
    const bool hit = std::find(grants.begin(), grants.end(), other.holder.grant) != grants.end();
    if (hit && grants_.book().find(key, other.holder.grant) == nullptr && other.pid != 0) {
      pids.push_back(other.pid);
    }
  }
  changed(key);
  if (auto done = control_.revoke(lock_key, grants, request.reason, deadline_); !done) {
    return done.error();
  }
  for (const GrantId grant : grants) {
    Entry* entry = grants_.book().find(key, grant);
    if (entry == nullptr) continue;
    entry->holder.revoked = true;
    entry->holder.reason = request.reason;
    grants_.wake(*entry);
    if (request.immediately) grants_.drop(*entry, "broken", deadline_);
  }
  if (request.immediately) {
    if (auto done = control_.tear_away(lock_key, grants, pids, deadline_); !done) {
      if (done.error().code != Code::unauthorized) return done.error();
      return outcome(Outcome::denied,
                     "its session belongs to another role: only a superuser, that role or a member "
                     "of pg_signal_backend can end it");
    }
  }
  settle(key);
  return reply;
}

Result<Reply> Verbs::get(const Request& request) {
  const std::string& key = request.asks[0].key;
  const auto now = seen(key);
  if (!now) return now.error();
  Reply reply = outcome(Outcome::done);
  reply.info =
      core::describe(key, grants_.book().picture(key, **now), grants_.now(), ~std::size_t{0});
  return reply;
}

}  // namespace baton::store::postgres_advisory
