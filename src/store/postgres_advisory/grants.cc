#include "store/postgres_advisory/grants.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace baton::store::postgres_advisory {
namespace {

constexpr Millis kTakeLimit{5000};
// A commit waits for a disk, and to give up on one leaves its asker in doubt.
constexpr Millis kLeastToWrite{2000};
constexpr std::size_t kMaxLostGrants = 1000;

Deadline bounded(Deadline deadline, Millis most) {
  return std::min(deadline, BootClock::now() + most);
}

}  // namespace

// A lease is renewed after a third of its TTL and trusted for nine tenths: in between there is time
// for two silent sessions. Where every answer takes longer, slow is not silent: then it is twice
// what the quickest took. Without any other lease it may be as long as the caller waits.
Deadline Grants::patience(Deadline deadline, Session::CallKind asked, bool holds) const {
  Millis shortest = Millis::max();
  Millis quickest = Millis::max();
  int held = 0;
  for (const auto& [key, name] : table_.names()) {
    for (const auto& entry : name.entries) {
      if (!entry->holds) continue;
      shortest = std::min(shortest, entry->holder.ttl);
      quickest = std::min(quickest, entry->session->last_took(asked));
      ++held;
    }
  }
  if (held <= (holds ? 1 : 0) || !settings_.timers) return deadline;
  const Millis least = asked == Session::CallKind::to_write ? kLeastToWrite : Millis{0};
  return bounded(deadline, std::max({shortest / 6, 2 * quickest, least}));
}

StoreTime Grants::now() const {
  if (test_clock_) return test_clock_();
  return std::chrono::duration_cast<StoreTime>(BootClock::now().time_since_epoch());
}

void Grants::wake(const GrantEntry& entry) {
  wakes_.push_back({entry.holder.channel, entry.lock.grant});
}

bool Grants::settle(const std::string& key, Deadline deadline) {
  SessionTable::Name& name = table_.at(key);
  const StoreTime time = now();
  std::erase_if(name.tombstones, [&](const core::Tombstone& t) { return t.until <= time; });
  bool changed = false;
  // Waiters first: nobody who has stopped asking is to be handed what is freed now.
  for (const bool holding : {false, true}) {
    std::vector<GrantEntry*> over;
    for (const auto& entry : name.entries) {
      if (entry->holds == holding && entry->over() <= time) over.push_back(entry.get());
    }
    for (GrantEntry* entry : over) {
      drop(*entry, "it was over", deadline);
      changed = true;
    }
  }
  return promote(name, deadline) || changed;
}

Result<Grants::Taking> Grants::begin_take(LockRef lock, const core::Claimant& claimant,
                                          std::optional<std::int64_t> version,
                                          std::unique_ptr<Session> session, Deadline deadline) {
  auto sent = session->send_take(lock, claimant, version, false, claimant.ttl, at(),
                                 patience(deadline, Session::CallKind::to_write, false));
  if (!sent) {
    take_failed(lock.grant, sent.error(), *session);
    return sent.error();
  }
  return Taking{std::move(lock), claimant, std::move(session)};
}

Result<TermReply> Grants::finish_take(Taking taking, Deadline deadline) {
  auto term = taking.session->finish_take(patience(deadline, Session::CallKind::to_write, false));
  if (!term) {
    take_failed(taking.lock.grant, term.error(), *taking.session);
    return term;
  }
  if (term->took != Took::taken) {
    pool_.give_back(std::move(taking.session));
    return term;
  }
  auto entry = std::make_unique<GrantEntry>();
  entry->lock = std::move(taking.lock);
  static_cast<core::Claimant&>(entry->holder) = std::move(taking.claimant);
  entry->holder.token = term->token;
  entry->holder.since = now();
  entry->holder.expires = first_expiry(entry->holder, now());
  entry->holds = true;
  entry->session = std::move(taking.session);
  table_.add(std::move(entry));
  return term;
}

// If the server has granted it, the grant ends with its session; only a note may stay.
void Grants::take_failed(GrantId grant, const Error& error, const Session& session) {
  if (session.unconfirmed_note()) remember(grant, error.message, session);
}

Result<void> Grants::queue_up(LockRef lock, const core::Claimant& claimant, Millis queue_ttl,
                              Millis claim_within, std::unique_ptr<Session> session,
                              Deadline deadline) {
  if (auto begun = session->wait_for(lock, claimant, claim_within, deadline); !begun) {
    begun.error().in_doubt = false;  // whatever has begun ends with the session
    return begun;
  }
  auto entry = std::make_unique<GrantEntry>();
  entry->lock = std::move(lock);
  static_cast<core::Claimant&>(entry->holder) = claimant;
  entry->stale = now() + StoreTime(queue_ttl);
  entry->claim_within = claim_within;
  entry->session = std::move(session);
  const std::string key = entry->lock.key;
  table_.add(std::move(entry));
  promote(table_.at(key), deadline);
  return {};
}

// With the machine's clock a hand-over is taken in when it arrives. With a test's clock nothing
// happens by itself, so what the server has decided by now must be known by now.
void Grants::wait_for_the_server(SessionTable::Name& name, Deadline deadline) {
  if (!std::exchange(name.changed, false)) return;
  for (;;) {
    std::vector<int> pids;
    for (const auto& entry : name.entries) {
      if (!entry->holds && !entry->has_lock) pids.push_back(entry->session->pid());
    }
    if (pids.empty()) return;
    const auto queue = queries_.queue_of(pids, deadline);
    if (!queue || BootClock::now() >= deadline) return;
    for (const auto& entry : name.entries) {
      if (entry->holds || entry->has_lock) continue;
      const auto place = queue->find(entry->session->pid());
      if (place != queue->end() && place->second) {
        entry->has_lock = entry->session->finish_wait(deadline) == Session::Wait::got_it;
      }
    }
    if (queue->size() == pids.size()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// In the order of the turns, so that tokens grow in the order of the queue.
bool Grants::promote(SessionTable::Name& name, Deadline deadline) {
  if (!settings_.timers) wait_for_the_server(name, deadline);
  std::vector<GrantEntry*> waiting;
  for (const auto& entry : name.entries) {
    if (!entry->holds) waiting.push_back(entry.get());
  }
  bool changed = false;
  for (GrantEntry* entry : waiting) {
    const auto wait = entry->has_lock ? Session::Wait::got_it : entry->session->poll_wait();
    changed = take_in(*entry, wait, deadline) || changed;
  }
  return changed;
}

bool Grants::take_in(GrantEntry& entry, Session::Wait wait, Deadline deadline) {
  switch (wait) {
    case Session::Wait::on: return false;
    case Session::Wait::got_it: return take_handed(entry, deadline);
    case Session::Wait::too_long:
    case Session::Wait::cancelled: entry.session->wait_again(); return false;
    case Session::Wait::broken: lose(entry, entry.session->last_error()); return true;
  }
  return false;
}

bool Grants::take_handed(GrantEntry& entry, Deadline deadline) {
  entry.has_lock = true;
  const auto term = entry.session->take(
      entry.lock, entry.holder, std::nullopt, true, entry.claim_within, at(),
      patience(bounded(deadline, kTakeLimit), Session::CallKind::to_write, false));
  if (!term) {
    lose(entry, term.error().message);
    return true;
  }
  if (term->took != Took::taken) return false;
  entry.has_lock = false;
  entry.holds = true;
  entry.holder.state = core::HolderState::handed;
  entry.holder.token = term->token;
  entry.holder.since = now();
  entry.holder.expires = now() + StoreTime(entry.claim_within);
  wake(entry);
  return true;
}

Result<void> Grants::leave_queue(GrantEntry& entry, Deadline deadline) {
  const auto finish = [&]() -> Result<void> {
    const Deadline limit = patience(deadline, Session::CallKind::to_write, false);
    if (auto sent = entry.session->send_finish(entry.lock, {}, false, limit); !sent) return sent;
    return entry.session->await_finish(limit);
  };
  if (entry.has_lock) return finish();
  if (auto asked = queries_.cancel(entry.session->pid(), deadline); !asked) return asked;
  switch (entry.session->finish_wait(patience(deadline, Session::CallKind::to_look, false))) {
    // A session that is told to stop in the moment in which it is handed the lock answers with an
    // error and has the lock all the same.
    case Session::Wait::got_it:
    case Session::Wait::too_long:
    case Session::Wait::cancelled: return finish();
    case Session::Wait::on:
    case Session::Wait::broken: break;
  }
  return Error{.message = "the session did not leave the queue", .retryable = true};
}

Result<void> Grants::end(GrantEntry& entry, const NoteChange& change, bool park,
                         Deadline deadline) {
  return finish_end(begin_end(entry, change, park, deadline), deadline);
}

Grants::Ending Grants::begin_end(GrantEntry& entry, const NoteChange& change, bool park,
                                 Deadline deadline) {
  const Deadline limit = bounded(deadline, settings_.server.apply_limit);
  if (auto heard =
          entry.session->catch_up(patience(limit, Session::CallKind::to_look, entry.holds));
      !heard) {
    const std::string why = "its session with the server was silent, and is closed";
    lose(entry, why);
    return {.sent = Error{.code = Code::lost, .message = why}};
  }
  if (!entry.holds) return {.entry = &entry};  // nothing is sent yet to leave a queue
  const Deadline sent_by = patience(limit, Session::CallKind::to_write, true);
  return {.entry = &entry, .sent = entry.session->send_finish(entry.lock, change, park, sent_by)};
}

Result<void> Grants::finish_end(const Ending& ending, Deadline deadline) {
  auto ended = ending.sent;
  if (ending.entry == nullptr) return ended;
  GrantEntry& entry = *ending.entry;
  if (ended) {
    const Deadline limit = bounded(deadline, settings_.server.apply_limit);
    ended = entry.holds
                ? entry.session->await_finish(patience(limit, Session::CallKind::to_write, true))
                : leave_queue(entry, limit);
  }
  if (!ended && entry.holds && entry.session->usable()) return ended;
  if (!ended && entry.holds) remember(entry.lock.grant, ended.error().message, *entry.session);
  const auto removed = table_.remove(entry);
  // A session that is not sure to be out of it is closed, and out of it by that.
  if (ended) pool_.give_back(std::move(removed->session));
  return ended;
}

void Grants::drop(GrantEntry& entry, const std::string& why, Deadline deadline) {
  const std::string key = entry.lock.key;
  const GrantId grant = entry.lock.grant;
  if (!entry.session->catch_up(BootClock::now())) return lose(entry, why);
  if (end(entry, {}, false, deadline)) return;
  if (GrantEntry* left = table_.find(key, grant)) lose(*left, why);
}

void Grants::lose(GrantEntry& entry, const std::string& why) {
  wake(entry);
  if (entry.holds) remember(entry.lock.grant, why, *entry.session);
  table_.remove(entry);
}

void Grants::remember(GrantId grant, const std::string& why, const Session& session) {
  if (lost_grants_.size() >= kMaxLostGrants) lost_grants_.clear();
  lost_grants_[grant] = {why, session.unconfirmed_note()};
}

// A claim writes what its acquire said.
bool Grants::may_have_written(const Request& request) const {
  const auto known = lost_grants_.find(request.grant);
  if (known == lost_grants_.end() || !known->second.unconfirmed_note) return false;
  return request.verb == Verb::claim || request.change == *known->second.unconfirmed_note;
}

std::string Grants::why_lost(GrantId grant) const {
  const auto known = lost_grants_.find(grant);
  return known == lost_grants_.end() ? "the grant has ended" : known->second.why;
}

void Grants::hear(GrantEntry& entry, Deadline deadline) {
  if (!entry.holds && !entry.has_lock) {
    promote(table_.at(entry.lock.key), deadline);
    return;
  }
  std::vector<GrantId> revoked;
  const bool there = entry.session->listen(revoked);
  if (std::find(revoked.begin(), revoked.end(), entry.lock.grant) != revoked.end()) wake(entry);
  if (!there) lose(entry, "its session with the server has ended");
}

StoreTime Grants::next_end() const {
  StoreTime next = StoreTime::max();
  for (const auto& [key, name] : table_.names()) {
    for (const auto& entry : name.entries) next = std::min(next, entry->over());
  }
  return next;
}

}  // namespace baton::store::postgres_advisory
