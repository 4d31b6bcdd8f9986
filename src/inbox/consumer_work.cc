// The half of ConsumerLoop that handles deliveries and due retries.

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include <sys/socket.h>

#include "inbox/consumer_loop.h"
#include "inbox/session.h"

namespace baton::inbox {
namespace {

using Ended = AttemptResult::Ended;
using Kind = ConsumerNote::Kind;

constexpr int kMaxConflicts = 20;
// A delivery that came back so often may have killed the processes that handled it: it is tried
// from inbox_events, where attempts are counted before they begin.
constexpr std::uint32_t kCrashes = 3;

Decision bury_it(Ledger ledger, Aggregate) { return bury(ledger); }

// Random, so that transactions that conflicted do not conflict again.
Millis conflict_pause() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return Millis{1 + static_cast<int>(random() % 30)};
}

}  // namespace

void ConsumerLoop::note_failure(const std::string& id) {
  if (breaker_.failed(id)) {
    note(Kind::breaker_opened, "CONSUMER_BREAKER_OPENED", nullptr, 0,
         std::to_string(options_.breaker_after) + " different events failed in a row");
  }
}

void ConsumerLoop::note_success() {
  if (breaker_.succeeded()) note(Kind::breaker_closed, "CONSUMER_BREAKER_CLOSED");
}

// After a transaction of its own: a conflict with another replica, as where the default isolation
// is SERIALIZABLE, is soon over; an outage is waited for.
void ConsumerLoop::recover(const Error& error) {
  if (is_conflict(database_->sqlstate()) && ++conflicts_ <= kMaxConflicts) {
    return nap(conflict_pause());
  }
  conflicts_ = 0;
  pause(error.message);
}

// Turns what looks like an outage into a failure of the handler that it comes with each time.
bool ConsumerLoop::is_to_blame(AttemptResult& result, SessionFailures& failures) const {
  if (result.ended != Ended::away || !result.suspect) return false;
  if (!failures.failed_again(refusals_)) return false;
  result.ended = Ended::failed;
  result.why = "it failed with its session each time that it ran: " + result.why;
  return true;
}

void ConsumerLoop::process() {
  while (!in_hand_.empty() && subscription_ != nullptr && !failure_ && !stopping()) {
    std::vector<Incoming> batch;
    std::set<std::string> ids;
    while (!in_hand_.empty() && batch.size() < options_.batch) {
      Delivery& next = in_hand_.front();
      auto sent = event::from_message(next.message);
      const bool later_version =
          sent && handlers_->max_version > 0 && sent->event.version > handlers_->max_version;
      if (!sent || later_version || next.delivery_count >= kCrashes) {
        if (options_.ordered && !batch.empty()) break;  // those before it are decided first
        if (!process_alone(next)) return;
        in_hand_.pop_front();
        continue;
      }
      // The same event twice: the second time it is a duplicate.
      if (!ids.insert(sent->event.id).second) break;
      batch.push_back({std::move(next), std::move(*sent)});
      note(Kind::received, "EVENT_RECEIVED", &batch.back().sent.event, 0, {},
           batch.back().sent.occurred_at);
      in_hand_.pop_front();
    }
    if (!batch.empty()) process_batch(std::move(batch));
    settle();
    if (breaker_.open()) return;
  }
  settle();
}

// A delivery that no handler gets now. False: told to stop while the database is away.
bool ConsumerLoop::process_alone(Delivery delivery) {
  auto sent = event::from_message(delivery.message);
  const bool too_new =
      sent && handlers_->max_version > 0 && sent->event.version > handlers_->max_version;
  if (sent && !too_new) {
    const auto kept = keep_new(keep(*sent, delivery.message), keep_first,
                               "delivered again and again; a handler may have killed its process");
    if (!kept) return false;
    const Fate fate = *kept == Stored::held ? Fate::held : Fate::duplicate;
    tell({std::move(delivery), *sent}, fate, "");
    if (*kept == Stored::kept) note(Kind::kept, "EVENT_KEPT_FIRST", &sent->event);
    return true;
  }
  KeptMessage poison = keep_poison(delivery.message);
  const std::string why = sent ? "version " + std::to_string(sent->event.version) +
                                     " is not known here; up to " +
                                     std::to_string(handlers_->max_version) + " are"
                               : sent.error().message;
  if (sent) poison = keep(*sent, delivery.message);
  const auto kept = keep_new(poison, bury_it, why);
  if (!kept) return false;
  acknowledge(delivery.tag);
  if (*kept != Stored::known) {
    note(Kind::poison, "EVENT_POISON", &poison.event, 0, why);
  } else {
    note(Kind::skipped, "EVENT_SKIPPED_IDEMPOTENT", &poison.event);
  }
  return true;
}

// Puts a message that the ledger does not know into both tables. Nothing: told to stop before the
// database answered.
std::optional<ConsumerLoop::Stored> ConsumerLoop::keep_new(const KeptMessage& kept,
                                                           const Decide& decide,
                                                           const std::string& error) {
  while (connect_database()) {
    auto stored = Stored::known;
    auto done = database_->transaction([&](sql::Transaction& transaction) -> Result<void> {
      stored = Stored::known;
      const Outcome outcome = *decide(Ledger(), Aggregate::free).ledger;
      auto entered = handlers_->tables.enter(transaction, {kept.event_id}, outcome);
      if (!entered) return entered.error();
      if (entered->fresh.empty()) return {};
      auto aggregate = Aggregate::free;
      if (!kept.raw) {
        const auto found = handlers_->tables.in_trouble(transaction, {kept.event.aggregate});
        if (!found) return found.error();
        if (!found->empty()) aggregate = Aggregate::in_trouble;
      }
      const Decision decision = decide(Ledger(), aggregate);
      stored = decision.row.status == Status::held ? Stored::held : Stored::kept;
      if (*decision.ledger != outcome) {
        auto set = handlers_->tables.set_outcome(transaction, kept.event_id, *decision.ledger);
        if (!set) return set;
      }
      return handlers_->tables.insert(transaction, kept, decision, error);
    });
    if (done) {
      committed();
      return stored;
    }
    // Text that the database refuses, although it is valid: it is kept as bytes.
    if (done.error().code == Code::bad_request && !kept.raw) {
      return keep_new(keep_poison(kept.message), bury_it, done.error().message);
    }
    recover(done.error());
  }
  return {};
}

void ConsumerLoop::tell(const Incoming& one, Fate fate, const std::string& reason) {
  const Event& event = one.sent.event;
  acknowledge(one.delivery.tag);
  switch (fate) {
    case Fate::duplicate:
      note(Kind::skipped, "EVENT_SKIPPED_IDEMPOTENT", &event, 0, {}, one.sent.occurred_at);
      return;
    case Fate::done:
      note(Kind::processed, "EVENT_PROCESSED", &event, 1, {}, one.sent.occurred_at);
      return note_success();
    case Fate::rejected:
      note(Kind::rejected, "BUSINESS_VALIDATION_FAILED", &event, 1, reason, one.sent.occurred_at);
      return note_success();
    case Fate::held:
      return note(Kind::held, "EVENT_HELD", &event, 0, kHeldBack, one.sent.occurred_at);
    case Fate::postponed: return;
  }
}

// False: told to stop, nothing is known. Conflicts and outages are repeated here.
bool ConsumerLoop::run_batch(const std::vector<Incoming>& batch, AttemptResult& result,
                             bool& overran) {
  overran = false;
  SessionFailures failures(refusals_);
  for (int conflicts = 0; connect_database();) {
    const auto shared = std::make_shared<const std::vector<Incoming>>(batch);
    const auto attempt = std::make_shared<Attempt>(handlers_, database_);
    const auto progress = std::make_shared<DeliveryProgress>();
    if (!run_job(attempt,
                 [attempt, shared, progress] { attempt->handle_batch(*shared, *progress); })) {
      overran = true;
      result = {.ended = Ended::failed,
                .at = attempt->current(),
                .unsure = true,
                .why = "the handler took longer than " +
                       std::to_string(handlers_->timeout.count()) + " ms",
                .fates = attempt->decided()};
    } else {
      result = attempt->result();
    }
    if (result.unsure && attempt->transaction() != 0) {
      // The server ends what such a session has left open, though the attempt still has it.
      if (database_ != nullptr && !database_->usable()) {
        (void)::shutdown(socket_of(*database_), SHUT_RDWR);
      }
      const auto committed = was_committed(attempt->transaction());
      if (!committed) return false;
      result.ended_transaction = *committed;
    }
    if (result.ended_transaction) {
      if (!overran) result.why = kEndedTransaction;
      result.ended = Ended::failed;
    }
    if (overran || is_to_blame(result, failures)) return true;
    if (result.ended == Ended::away) {
      pause(result.why);
    } else if (result.ended == Ended::conflict && ++conflicts <= kMaxConflicts) {
      nap(conflict_pause());
    } else {
      if (result.ended == Ended::conflict) result.ended = Ended::failed;
      return true;
    }
  }
  return false;
}

void ConsumerLoop::process_batch(std::vector<Incoming> batch) {
  AttemptResult result;
  bool overran = false;
  const auto put_back = [&](auto begin) {
    for (auto it = batch.end(); it != begin;) in_hand_.push_front(std::move((--it)->delivery));
  };
  if (!run_batch(batch, result, overran)) return put_back(batch.begin());
  if (result.ended == Ended::well) {
    committed();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (result.fates[i] != Fate::postponed) tell(batch[i], result.fates[i], result.reasons[i]);
    }
    for (std::size_t i = batch.size(); i-- > 0;) {
      if (result.fates[i] == Fate::postponed) in_hand_.push_front(std::move(batch[i].delivery));
    }
    return;
  }
  if (result.ended_transaction && !withdraw(batch, result)) return put_back(batch.begin());
  // An ordered consumer first decides about those before the one that has overrun.
  if ((overran && !options_.ordered) || batch.size() == 1) {
    Incoming culprit = std::move(batch[result.at]);
    batch.erase(batch.begin() + static_cast<std::ptrdiff_t>(result.at));
    put_back(batch.begin());
    if (!fail_fresh(culprit, result.why)) in_hand_.push_front(std::move(culprit.delivery));
    return;
  }
  // Nobody knows which of the others would have failed too.
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (stopping() || failure_ || breaker_.open()) {
      return put_back(batch.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::vector<Incoming> alone;
    alone.push_back(std::move(batch[i]));
    process_batch(std::move(alone));
  }
}

// Whether a handler has committed the transaction: a session that is lost, or whose transaction has
// failed, does not tell whether that was the first one. Nothing: told to stop before the server
// knew.
std::optional<bool> ConsumerLoop::was_committed(std::int64_t transaction) {
  while (connect_database()) {
    const auto state = Tables::look_up(*database_, transaction);
    if (state && *state != TransactionState::open) return *state == TransactionState::committed;
    pause(state ? "the server still works for a handler that was given up" : state.error().message);
  }
  return {};
}

// A handler that commits has committed the ids of the whole batch; those behind it in the batch
// have not been handled.
bool ConsumerLoop::withdraw(const std::vector<Incoming>& batch, const AttemptResult& result) {
  while (connect_database()) {
    auto done = database_->transaction([&](sql::Transaction& transaction) -> Result<void> {
      for (std::size_t i = result.at + 1; i < batch.size(); ++i) {
        if (result.fates[i] != Fate::done) continue;
        auto left = handlers_->tables.leave(transaction, batch[i].sent.event.id);
        if (!left) return left;
      }
      return {};
    });
    if (done) return true;
    recover(done.error());
  }
  return false;
}

bool ConsumerLoop::fail_fresh(const Incoming& one, const std::string& why) {
  const auto kept = keep_new(
      keep(one.sent, one.delivery.message),
      [&](Ledger ledger, Aggregate aggregate) {
        return fail_delivery(ledger, handlers_->limits, aggregate);
      },
      why);
  if (!kept) return false;
  if (*kept == Stored::known) {  // another replica has decided meanwhile
    tell(one, Fate::duplicate, "");
    return true;
  }
  acknowledge(one.delivery.tag);
  note(Kind::failed, "TECHNICAL_FAILURE", &one.sent.event, 1, why, one.sent.occurred_at);
  note_failure(one.sent.event.id);
  return true;
}

// False: none is due.
bool ConsumerLoop::retry_due(bool probing) {
  if (!connect_database()) return false;
  std::optional<Kept> claimed;
  bool give_up = false;
  auto done = database_->transaction([&](sql::Transaction& transaction) -> Result<void> {
    auto due = handlers_->tables.lock_due(transaction);
    if (!due) return due.error();
    if (!*due) return {};
    claimed = std::move(**due);
    const Decision decision = claim(claimed->row, handlers_->limits);
    give_up = decision.run_hook;
    claimed->row = decision.row;
    return handlers_->tables.update(transaction, claimed->event_id, decision, "");
  });
  if (!done) {
    recover(done.error());
    return false;
  }
  committed();
  if (!claimed) return false;
  if (give_up) {
    record_failure(*claimed, claimed->last_error, false);
    return true;
  }
  SessionFailures failures(refusals_);
  for (int conflicts = 0; connect_database();) {
    const auto attempt = std::make_shared<Attempt>(handlers_, database_);
    const auto kept = std::make_shared<const Kept>(*claimed);
    const bool in_time = run_job(attempt, [attempt, kept] { attempt->handle_retry(*kept); });
    AttemptResult result =
        in_time ? attempt->result()
                : AttemptResult{.ended = Ended::failed, .why = "the handler took too long"};
    (void)is_to_blame(result, failures);
    const auto sent = event::from_message(claimed->message);
    const Event* event = sent ? &sent->event : nullptr;
    const int number = claimed->row.retries + 1;
    if (result.ended == Ended::away) {
      // The claim may run out meanwhile; then it is overtaken, or the row is claimed again.
      pause(result.why);
      continue;
    }
    if (result.ended == Ended::conflict && ++conflicts <= kMaxConflicts) {
      nap(conflict_pause());
      continue;
    }
    if (result.ended == Ended::well) {
      const bool rejected = result.fates.front() == Fate::rejected;
      note(rejected ? Kind::rejected : Kind::processed,
           rejected ? "BUSINESS_VALIDATION_FAILED" : "EVENT_PROCESSED", event, number,
           result.reasons.front(), sent ? sent->occurred_at : event::WallTime{});
      note_success();
    } else if (result.ended != Ended::overtaken) {
      record_failure(*claimed, result.why, probing);
      note_failure(claimed->event_id);
    }
    return true;
  }
  return false;
}

void ConsumerLoop::record_failure(const Kept& kept, const std::string& why, bool probing) {
  const auto sent = event::from_message(kept.message);
  const Event* event = sent ? &sent->event : nullptr;
  const int number = kept.row.retries + 1;
  std::string hook_error;
  SessionFailures failures(refusals_);
  for (int conflicts = 0; connect_database();) {
    if (!hook_error.empty()) {
      auto done = database_->transaction([&](sql::Transaction& transaction) -> Result<void> {
        const auto row = handlers_->tables.lock(transaction, kept.event_id);
        if (!row) return row.error();
        return handlers_->tables.update(transaction, kept.event_id,
                                        fail_hook(*row, kept.row.claim, handlers_->limits),
                                        "on_give_up failed: " + hook_error + "; before: " + why);
      });
      if (done) return note(Kind::hook_failed, "GIVE_UP_HOOK_FAILED", event, number, hook_error);
      recover(done.error());
      continue;
    }
    const auto attempt = std::make_shared<Attempt>(handlers_, database_);
    const auto own = std::make_shared<const Kept>(kept);
    const bool in_time = run_job(
        attempt, [attempt, own, why, probing] { attempt->record_failure(*own, why, probing); });
    if (!in_time) {
      hook_error = "it took too long";
      continue;
    }
    AttemptResult result = attempt->result();
    (void)is_to_blame(result, failures);
    if (result.ended == Ended::away) {
      pause(result.why);
    } else if (result.ended == Ended::conflict && ++conflicts <= kMaxConflicts) {
      nap(conflict_pause());
    } else if (result.ended == Ended::failed || result.ended == Ended::conflict) {
      hook_error = result.why;
    } else {
      if (result.ended == Ended::overtaken) return;
      note(result.dead ? Kind::dead : Kind::failed,
           result.dead ? "EVENT_DEAD" : "TECHNICAL_FAILURE", event, number, why);
      return;
    }
  }
}

}  // namespace baton::inbox
