#include "inbox/decision.h"

#include <array>
#include <utility>

#include "inbox/inbox_table.h"

namespace baton::inbox {
namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 5> kOutcomes{{
    {Outcome::done, outcome::done},
    {Outcome::rejected, outcome::rejected},
    {Outcome::retrying, outcome::retrying},
    {Outcome::dead, outcome::dead},
    {Outcome::discarded, outcome::discarded},
}};
constexpr std::array<std::pair<Status, std::string_view>, 4> kStatuses{{
    {Status::retry, status::retry},
    {Status::held, status::held},
    {Status::dead, status::dead},
    {Status::discarded, status::discarded},
}};

template <typename Table, typename Key>
std::string_view find_text(const Table& table, Key key) {
  for (const auto& [value, text] : table) {
    if (value == key) return text;
  }
  return {};
}

template <typename Value, typename Table>
std::optional<Value> find_value(const Table& table, std::string_view text) {
  for (const auto& [value, its_text] : table) {
    if (its_text == text) return value;
  }
  return {};
}

Decision moot() { return {.moot = true}; }

Decision put(Outcome ledger, const Trouble& row, Millis due_in = Millis{0}) {
  return {.ledger = ledger, .rows = Decision::Rows::put, .row = row, .due_in = due_in};
}

bool has_claim(const Row& row, std::int64_t claim) {
  return row && row->status == Status::retry && row->claim == claim;
}

Decision give_up(const Trouble& row) {
  Decision decision =
      put(Outcome::dead, {.status = Status::dead, .retries = row.retries, .claim = row.claim + 1});
  decision.run_hook = true;
  return decision;
}

Decision try_again(int retries, std::int64_t claim, Millis due_in) {
  return put(Outcome::retrying, {.status = Status::retry, .retries = retries, .claim = claim},
             due_in);
}

// Behind others of its aggregate.
Decision hold() { return put(Outcome::retrying, {.status = Status::held}); }

}  // namespace

std::string_view text_of(Outcome outcome) { return find_text(kOutcomes, outcome); }
std::string_view text_of(Status status) { return find_text(kStatuses, status); }
std::optional<Outcome> parse_outcome(std::string_view text) {
  return find_value<Outcome>(kOutcomes, text);
}
std::optional<Status> parse_status(std::string_view text) {
  return find_value<Status>(kStatuses, text);
}

bool holds(Status status) {
  return status == Status::retry || status == Status::held || status == Status::dead;
}

std::optional<std::size_t> head_of(std::span<const Arrived> rows) {
  std::optional<std::size_t> head;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!holds(rows[i].status)) continue;
    if (!head || rows[i].arrival < rows[*head].arrival) head = i;
  }
  return head;
}

Decision deliver(Ledger ledger, Aggregate aggregate) {
  if (ledger) return moot();
  if (aggregate == Aggregate::in_trouble) return hold();
  return {.ledger = Outcome::done, .run_handler = true};
}

Decision fail_delivery(Ledger ledger, const RetryLimits& limits, Aggregate aggregate) {
  if (ledger) return moot();
  if (aggregate == Aggregate::in_trouble) return hold();
  // Without retries its row has them used up.
  return try_again(limits.max_retries > 0 ? 0 : limits.last_retry(), 0, limits.delay_before(0));
}

Decision keep_first(Ledger ledger, Aggregate aggregate) {
  if (ledger) return moot();
  if (aggregate == Aggregate::in_trouble) return hold();
  return put(Outcome::retrying, {.status = Status::retry});
}

Decision bury(Ledger ledger) {
  if (ledger) return moot();
  return put(Outcome::dead, {.status = Status::dead});
}

Decision claim(const Trouble& row, const RetryLimits& limits) {
  const bool held = row.status == Status::held;
  if (row.status != Status::retry && !held) return moot();
  if (row.retries >= limits.last_retry() && !held) {
    // Left alone like a claimed retry, so that a hook that kills its process is not tried again at
    // once. Its claim stays: of two that give up, the second one finds it DEAD.
    Decision decision = try_again(row.retries, row.claim, limits.claim_lead);
    decision.run_hook = true;  // by fail_retry(), in a transaction of its own, behind this one
    return decision;
  }
  const int retries = held ? row.retries : row.retries + 1;
  Decision decision = try_again(retries, row.claim + 1, limits.claim_lead);
  decision.run_handler = true;  // likewise
  return decision;
}

Decision retry(const Row& row, std::int64_t claim, Outcome outcome) {
  if (!has_claim(row, claim)) return moot();
  return {.ledger = outcome, .rows = Decision::Rows::erase, .run_handler = true};
}

bool gives_back(const FailedAttempt& attempt, const RetryLimits& limits) {
  return attempt.probe && attempt.in_trouble_for < limits.breaker_patience;
}

Decision fail_retry(const Row& row, std::int64_t claim, const FailedAttempt& attempt,
                    const RetryLimits& limits) {
  if (!has_claim(row, claim)) return moot();
  if (gives_back(attempt, limits)) {
    const int retries = std::max(row->retries - 1, 0);  // 0: of what was HELD, its first attempt
    return try_again(retries, claim + 1, limits.delay_before(retries));
  }
  if (row->retries >= limits.max_retries) return give_up(*row);
  return try_again(row->retries, claim + 1, limits.delay_before(row->retries));
}

Decision fail_hook(const Row& row, std::int64_t claim, const RetryLimits& limits) {
  if (!has_claim(row, claim)) return moot();
  const int times = std::clamp(row->retries - limits.last_retry(), 0, 10);
  // Past the limit it counts how often the hook has failed.
  return try_again(row->retries + 1, claim + 1,
                   std::min(kMaxHookDelay, kMinHookDelay * (std::int64_t{1} << times)));
}

Decision redrive(const Row& row) {
  if (!row || row->status != Status::dead) return moot();
  return try_again(0, row->claim + 1, Millis{0});
}

Decision discard(const Row& row) {
  if (!row || row->status == Status::discarded) return moot();
  return put(Outcome::discarded,
             {.status = Status::discarded, .retries = row->retries, .claim = row->claim + 1});
}

bool ages_out(Outcome outcome) {
  return outcome == Outcome::done || outcome == Outcome::rejected || outcome == Outcome::discarded;
}

}  // namespace baton::inbox
