#include "inbox/attempt.h"

#include <algorithm>
#include <exception>

#include "inbox/session.h"

namespace baton::inbox {
namespace {

using Ended = AttemptResult::Ended;

// SQLite has one writer: others wait for a batch.
constexpr Millis kSqliteBatch{20};

constexpr const char* kOtherSettings =
    "a statement of the consumer failed behind the handler, which may have changed the role or"
    " other settings: before it returns it must put them back, as with SET LOCAL ROLE NONE: ";

}  // namespace

// An error of our own statements. Behind a handler they are as it has left the session.
void Attempt::fail(const Error& error) {
  if (!called_) return end_with(error);
  fail_commit(error);
  const std::string& state = database_->sqlstate();
  const bool stays = !state.empty() && !state.starts_with("57P");  // the server
  if (!stays || result_.ended == Ended::conflict) return;
  result_.suspect = true;
  result_.why = kOtherSettings + result_.why;
}

// An error that comes only with the COMMIT, as of a deferred constraint, is due to what a handler
// wrote: waiting would not help.
void Attempt::fail_commit(const Error& error) {
  end_with(error);
  if (result_.ended == Ended::away && !error.retryable && !error.in_doubt) {
    result_.ended = Ended::failed;
  }
}

void Attempt::end_with(const Error& error) {
  result_.why = error.message;
  result_.ended = is_conflict(database_->sqlstate()) ? Ended::conflict : Ended::away;
  result_.suspect = called_ && !database_->usable();
}

void Attempt::broke(const std::string& why) {
  result_ = {.ended = Ended::failed, .at = current_, .why = why};
}

Attempt::Outcomes Attempt::call(const Call& handler, const Event& event, const Message& message,
                                int attempt, std::string_view last_error) {
  const Deadline by = BootClock::now() + handlers_->timeout;
  Handling handling({.event = &event,
                     .message = &message,
                     .attempt = attempt,
                     .last_error = last_error,
                     .postgres = database_->postgres(),
                     .sqlite = database_->sqlite(),
                     .outbox = &handlers_->outbox,
                     .deadline = by});
  Outcomes outcome{.handled = done()};
  called_ = true;
  limit_.set(by);
  bool refused = true;
  try {
    outcome.handled = handler(handling);
    refused = outcome.handled.how() == Handled::How::failed;
    if (refused) outcome.why = outcome.handled.reason();
  } catch (const std::exception& error) {
    outcome.why = error.what();
  } catch (...) {
    outcome.why = "the handler threw something that is no std::exception";
  }
  limit_.clear();
  const SessionState state = look_at(*database_);
  if (!refused && state.open) return outcome;
  outcome.ended = state.lost                    ? Ended::away
                  : is_conflict(state.sqlstate) ? Ended::conflict
                                                : Ended::failed;
  result_.suspect = state.lost;
  outcome.ended_transaction = state.ended;
  outcome.unsure = !state.open && !state.ended;
  if (outcome.why.empty() || state.ended) outcome.why = state.why;
  if (outcome.why.empty()) outcome.why = "the handler failed without a reason";
  return outcome;
}

// False: the handlers have failed after all.
bool Attempt::before_commit() {
  if (!handlers_->before_commit) return true;
  limit_.set(BootClock::now() + handlers_->timeout);
  Result<void> ready;
  try {
    ready = handlers_->before_commit();
  } catch (const std::exception& error) {
    ready = Error{.code = Code::unavailable, .message = error.what()};
  } catch (...) {
    ready = Error{.code = Code::unavailable, .message = "before_commit threw"};
  }
  limit_.clear();
  if (ready) return true;
  result_.ended = Ended::failed;
  result_.why = ready.error().message;
  return false;
}

void Attempt::handle_batch(const std::vector<Incoming>& batch, DeliveryProgress& progress) {
  result_ = {};
  result_.fates.assign(batch.size(), Fate::duplicate);
  result_.reasons.resize(batch.size());
  auto transaction = sql::Transaction::begin(*database_);
  if (!transaction) return fail(transaction.error());
  while (progress.next() != DeliveryProgress::Step::acknowledge) {
    switch (progress.next()) {
      case DeliveryProgress::Step::insert: {
        std::vector<std::string> ids;
        ids.reserve(batch.size());
        for (const auto& one : batch) ids.push_back(one.sent.event.id);
        // All replicas in one order, so that none waits for another in a circle.
        std::sort(ids.begin(), ids.end());
        auto entered = handlers_->tables.enter(*transaction, ids, Outcome::done);
        if (!entered) return fail(entered.error());
        transaction_ = entered->transaction;
        std::sort(entered->fresh.begin(), entered->fresh.end());
        if (auto decided = decide(*transaction, batch, entered->fresh); !decided) {
          return fail(decided.error());
        }
        if (result_.ended != Ended::well) return;
        decided_ = result_.fates;
        progress.inserted(std::find(result_.fates.begin(), result_.fates.end(), Fate::done) !=
                          result_.fates.end());
        break;
      }
      case DeliveryProgress::Step::handle: {
        if (auto ran = run_new(*transaction, batch); !ran) return fail(ran.error());
        if (result_.ended == Ended::well) (void)before_commit();
        progress.handled(result_.ended == Ended::well);
        if (result_.ended != Ended::well) return;
        break;
      }
      case DeliveryProgress::Step::commit:
        transaction_ = 0;
        if (auto committed = transaction->commit(); !committed) {
          return fail_commit(committed.error());
        }
        progress.committed();
        break;
      default: return;
    }
  }
}

// Which are handled, and which are held back. `fresh`: the ids that the ledger did not know,
// sorted.
Result<void> Attempt::decide(sql::Transaction& transaction, const std::vector<Incoming>& batch,
                             const std::vector<std::string>& fresh) {
  const auto is_new = [&](const Incoming& one) {
    return std::binary_search(fresh.begin(), fresh.end(), one.sent.event.id);
  };
  std::vector<std::string> aggregates;
  for (const Incoming& one : batch) {
    if (is_new(one)) aggregates.push_back(one.sent.event.aggregate);
  }
  const auto in_trouble = handlers_->tables.in_trouble(transaction, aggregates);
  if (!in_trouble) return in_trouble.error();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Incoming& one = batch[i];
    const Decision decision = deliver(
        is_new(one) ? Ledger() : Ledger(Outcome::done),
        in_trouble->contains(one.sent.event.aggregate) ? Aggregate::in_trouble : Aggregate::free);
    if (decision.moot) continue;
    result_.fates[i] = decision.run_handler ? Fate::done : Fate::held;
    if (decision.run_handler) continue;
    auto held = hold(transaction, one, decision);
    if (held) continue;
    if (held.error().code != Code::bad_request) return held;
    // Text that the database refuses: alone it is kept as bytes.
    result_.ended = Ended::failed;
    result_.at = i;
    result_.why = held.error().message;
    return {};
  }
  return {};
}

Result<void> Attempt::hold(sql::Transaction& transaction, const Incoming& one,
                           const Decision& decision) {
  auto set = handlers_->tables.set_outcome(transaction, one.sent.event.id, *decision.ledger);
  if (!set) return set;
  return handlers_->tables.insert(transaction, keep(one.sent, one.delivery.message), decision,
                                  kHeldBack);
}

Result<void> Attempt::run_new(sql::Transaction& transaction, const std::vector<Incoming>& batch) {
  const Instant began = BootClock::now();
  bool first = true;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (result_.fates[i] != Fate::done) continue;
    const Incoming& one = batch[i];
    if (!first && database_->kind() == sql::Kind::sqlite &&
        BootClock::now() - began > kSqliteBatch) {
      result_.fates[i] = Fate::postponed;
      if (auto left = handlers_->tables.leave(transaction, one.sent.event.id); !left) return left;
      continue;
    }
    first = false;
    current_ = i;
    const Outcomes outcome = call(handlers_->handler, one.sent.event, one.delivery.message, 1, {});
    if (outcome.ended != Ended::well) {
      result_.ended = outcome.ended;
      result_.at = i;
      result_.ended_transaction = outcome.ended_transaction;
      result_.unsure = outcome.unsure;
      result_.why = outcome.why;
      return {};
    }
    if (outcome.handled.how() != Handled::How::business_error) continue;
    result_.fates[i] = Fate::rejected;
    result_.reasons[i] = outcome.handled.reason();
    auto set = handlers_->tables.set_outcome(transaction, one.sent.event.id, Outcome::rejected);
    if (!set) return set;
  }
  return {};
}

void Attempt::handle_retry(const Kept& kept) {
  result_ = {};
  const auto sent = event::from_message(kept.message);
  if (!sent) {  // redriven, although it is no event
    result_.ended = Ended::failed;
    result_.why = sent.error().message;
    return;
  }
  auto transaction = sql::Transaction::begin(*database_);
  if (!transaction) return fail(transaction.error());
  const auto row = handlers_->tables.lock(*transaction, kept.event_id);
  if (!row) return fail(row.error());
  if (retry(*row, kept.row.claim, Outcome::done).moot) {
    result_.ended = Ended::overtaken;
    return;
  }
  const Outcomes outcome =
      call(handlers_->handler, sent->event, kept.message, kept.row.retries + 1, kept.last_error);
  if (outcome.ended != Ended::well) {
    result_.ended = outcome.ended;
    result_.why = outcome.why;
    return;
  }
  if (!before_commit()) return;
  const bool rejected = outcome.handled.how() == Handled::How::business_error;
  result_.fates.assign(1, rejected ? Fate::rejected : Fate::done);
  result_.reasons.assign(1, outcome.handled.reason());
  const Decision decision =
      retry(*row, kept.row.claim, rejected ? Outcome::rejected : Outcome::done);
  auto stored = handlers_->tables.update(*transaction, kept.event_id, decision, "");
  if (!stored) return fail(stored.error());
  stored = transaction->commit();
  if (!stored) fail_commit(stored.error());
}

void Attempt::record_failure(const Kept& kept, const std::string& error, bool probe) {
  result_ = {};
  auto transaction = sql::Transaction::begin(*database_);
  if (!transaction) return fail(transaction.error());
  const auto row = handlers_->tables.lock(*transaction, kept.event_id);
  if (!row) return fail(row.error());
  const Decision decision =
      fail_retry(*row, kept.row.claim, {.probe = probe, .in_trouble_for = kept.in_trouble_for},
                 handlers_->limits);
  if (decision.moot) {
    result_.ended = Ended::overtaken;
    return;
  }
  if (decision.run_hook && handlers_->on_give_up) {
    const auto hook = [&](Handling& handling) {
      handlers_->on_give_up(handling);
      return done();
    };
    const auto sent = event::from_message(kept.message);
    const KeptMessage poison = keep_poison(kept.message);
    const Outcomes outcome =
        call(hook, sent ? sent->event : poison.event, kept.message, kept.row.retries + 1, error);
    if (outcome.ended != Ended::well) {
      result_.ended = outcome.ended;
      result_.why = outcome.why;
      return;
    }
  }
  auto stored = handlers_->tables.update(*transaction, kept.event_id, decision, error);
  if (!stored) return fail(stored.error());
  stored = transaction->commit();
  if (!stored) return fail_commit(stored.error());
  result_.dead = decision.row.status == Status::dead;
}

}  // namespace baton::inbox
