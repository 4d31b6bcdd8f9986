#include "store/postgres/batch.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "core/apply.h"
#include "store/common/duplicate_keys.h"
#include "store/common/same_terms.h"
#include "store/postgres/sql_error.h"

namespace baton::store::postgres {
namespace {

constexpr std::size_t kQuickChunk = 1000;
constexpr std::size_t kSlowChunk = 200;
constexpr int kTries = 3;  // of one request that the server sacrificed to resolve a deadlock

template <typename Indices, typename Send>
Result<void> in_chunks(const Indices& all, std::size_t most, Send send) {
  for (std::size_t from = 0; from < all.size(); from += most) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(from);
    const auto count = static_cast<std::ptrdiff_t>(std::min(most, all.size() - from));
    if (auto sent = send(Indices(first, first + count)); !sent) return sent;
  }
  return {};
}

}  // namespace

BatchRun::BatchRun(std::span<const Request> batch, At at, const Settings& settings,
                   Guesses& guesses)
    : entered_(BootClock::now()),
      batch_(batch),
      at_(at),
      settings_(settings),
      guesses_(guesses),
      replies_(batch.size()),
      settled_(batch.size()) {
  sort_out();
}

// A request takes the short way if the row of its one name may decide it, and no other request of
// the batch could see the difference: the names of all others are different ones.
void BatchRun::sort_out() {
  DuplicateKeys<std::string_view> names;
  bool schema_in_use = false;
  plain_renewals_only_ = true;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (auto rule = core::broken_rule(batch_[i])) {
      replies_[i].message = std::move(*rule);
      settled_[i] = true;
      continue;
    }
    schema_in_use = schema_in_use || batch_[i].targets[0].key == core::kSchemaKey;
    plain_renewals_only_ =
        plain_renewals_only_ && batch_[i].verb == Verb::renew && batch_[i].change.empty();
    if (batch_.size() == 1) continue;
    for (const Target& target : batch_[i].targets) names.add(target.key);
  }
  names.count();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (settled_[i]) continue;
    const Request& request = batch_[i];
    const bool alone = !schema_in_use && !names.more_than_once(request.targets[0].key);
    (alone && is_simple(request)  ? quick_
     : alone && is_noted(request) ? noted_
                                  : slow_)
        .push_back(i);
  }
  for (Indices* some : {&quick_, &noted_}) {
    std::sort(some->begin(), some->end(), [&](std::size_t a, std::size_t b) {
      return batch_[a].targets[0].key < batch_[b].targets[0].key;
    });
  }
}

Batch BatchRun::pick(const Indices& indices) const {
  Batch picked;
  picked.reserve(indices.size());
  for (const std::size_t index : indices) picked.push_back(&batch_[index]);
  return picked;
}

// Preparing comes first: it may take as long as a statement may, and what follows must not be late.
Result<Rows> BatchRun::run(const Statement& statement, const Params& params) {
  if (auto prepared = connection_->prepare(statement, deadline_); !prepared) {
    return prepared.error();
  }
  if (too_late_to_send()) {
    return Error{.code = Code::unavailable,
                 .message = settings_.location + " is too busy to be asked in time",
                 .retryable = true};
  }
  return connection_->run(statement, params, deadline_);
}

bool BatchRun::too_late_to_send() const {
  return BootClock::now() > entered_ + settings_.send_limit();
}

BatchRun::Indices BatchRun::unsettled() const {
  Indices rest;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (!settled_[i]) rest.push_back(i);
  }
  return rest;
}

// The session goes on, and nothing of the statement has happened.
bool BatchRun::rolled_back(const Error& error) const {
  return !error.in_doubt && connection_->usable();
}

Result<std::vector<Reply>> BatchRun::send(Connection& connection, Deadline deadline) {
  connection_ = &connection;
  deadline_ = std::min(deadline, limit());
  auto sent = batch_.size() == 1 && !quick_.empty() && batch_[0].verb != Verb::renew ? send_one(0)
                                                                                     : send_quick();
  if (sent && !noted_.empty()) sent = send_noted();
  if (!sent) {
    sent.error().in_doubt = sent.error().in_doubt || answered_;
    return sent.error();
  }
  // What the short way left goes the long way, in the order of the batch.
  Result<void> failed;
  auto slow = in_chunks(unsettled(), kSlowChunk, [&](const Indices& some) {
    auto chunk = send_slow(some);
    if (chunk || !rolled_back(chunk.error())) return chunk;
    failed = chunk;
    return Result<void>{};
  });
  if (slow && failed) return std::move(replies_);
  Error error = slow ? failed.error() : slow.error();
  if (answered_ && rolled_back(error)) {
    for (const std::size_t index : unsettled()) give_up_on(index, error);
    return std::move(replies_);
  }
  error.in_doubt = error.in_doubt || answered_;
  return error;
}

// A lone request: the shortest statement if its name was free lately, else one that settles it in
// any case.
Result<void> BatchRun::send_one(std::size_t index) {
  const Request& request = batch_[index];
  if (request.verb != Verb::claim && !guesses_.is_contended(request.targets[0].key)) {
    if (auto sent = send_free(index); !sent || settled_[index]) return sent;
    guesses_.contended(request.targets[0].key);
  }
  const auto rows =
      request.verb == Verb::acquire ? run(kAcquireOne, acquire_one_params(request, at_))
      : request.verb == Verb::claim ? run(kClaimOne, claim_one_params(request, at_))
                                    : run(kReleaseOne, release_one_params(request, at_));
  if (!rows) {
    if (is_locked_out(connection_->state())) return rows.error();  // no use in waiting twice
    return leave_to_the_long_way(rows.error());
  }
  for (int row = 0; row < rows->size(); ++row) {
    replies_[index] = reply_of(*rows, row, {&request}).second;
    settled_[index] = true;
  }
  return {};
}

Result<void> BatchRun::send_free(std::size_t index) {
  const Request& request = batch_[index];
  const std::string& key = request.targets[0].key;
  if (request.verb == Verb::release) {
    const auto let_go = run(kReleaseHeld, release_one_params(request, at_));
    if (!let_go) return let_go.error();
    if (let_go->affected() == 0) return {};
    replies_[index].outcome = Outcome::done;
    settled_[index] = answered_ = true;
    guesses_.has_row(key);
    return {};
  }
  const auto rows = run(guesses_.may_have_row(key) ? kAcquireKnown : kAcquireFree,
                        acquire_free_params(request, at_));
  if (!rows) return rows.error();
  if (rows->size() == 0) return {};
  replies_[index] = granted_reply(*rows, 0, 0);
  settled_[index] = answered_ = true;
  guesses_.has_row(key);
  return {};
}

Result<void> BatchRun::send_quick() {
  return in_chunks(quick_, kQuickChunk, [&](const Indices& some) -> Result<void> {
    Indices acquires;
    Indices releases;
    Indices claims;
    Indices renewals;
    for (const std::size_t i : some) {
      switch (batch_[i].verb) {
        case Verb::acquire: acquires.push_back(i); break;
        case Verb::release: releases.push_back(i); break;
        case Verb::claim: claims.push_back(i); break;
        default: renewals.push_back(i); break;
      }
    }
    // Each its own transaction: only so do all take their row locks in the order of the keys.
    if (auto sent = send_known(acquires); !sent) return sent;
    if (auto sent = send_new(acquires); !sent) return sent;
    if (!releases.empty()) {
      auto sent = send_plain(kReleaseMany, grants_params(pick(releases), at_));
      if (!sent) return sent;
    }
    if (!claims.empty()) {
      auto sent = send_plain(kClaimMany, claim_many_params(pick(claims), at_));
      if (!sent) return sent;
    }
    return renewals.empty() ? Result<void>{} : send_renewals(renewals);
  });
}

// Leaves those that may have no row.
Result<void> BatchRun::send_known(Indices& acquires) {
  if (acquires.size() < 2 || !are_mostly_known(acquires) || !are_all_alike(acquires)) return {};
  if (auto sent = send_plain(kAcquireAlike, acquire_alike_params(pick(acquires), at_)); !sent) {
    return sent;
  }
  std::erase_if(acquires, [&](std::size_t i) {
    if (settled_[i]) guesses_.has_row(batch_[i].targets[0].key);
    return settled_[i] || may_have_row(i);
  });
  return {};
}

bool BatchRun::may_have_row(std::size_t index) const {
  return guesses_.may_have_row(batch_[index].targets[0].key);
}

bool BatchRun::are_mostly_known(const Indices& acquires) const {
  const auto known = std::count_if(acquires.begin(), acquires.end(),
                                   [&](std::size_t i) { return may_have_row(i); });
  return static_cast<std::size_t>(known) * 2 >= acquires.size();
}

bool BatchRun::are_all_alike(const Indices& acquires) const {
  return std::all_of(acquires.begin(), acquires.end(),
                     [&](std::size_t i) { return same_terms(batch_[i], batch_[acquires[0]]); });
}

Result<void> BatchRun::send_new(const Indices& acquires) {
  if (acquires.empty()) return {};
  auto sent = send_plain(kQuick, quick_params(pick(acquires), at_));
  for (const std::size_t i : acquires) {
    if (settled_[i]) guesses_.has_row(batch_[i].targets[0].key);
  }
  return sent;
}

Result<void> BatchRun::send_plain(const Statement& statement, const Params& params) {
  const auto rows = run(statement, params);
  if (!rows) return leave_to_the_long_way(rows.error());
  settle_by_key(*rows, quick_);
  return {};
}

Result<void> BatchRun::send_noted() {
  return in_chunks(noted_, kSlowChunk, [&](const Indices& some) -> Result<void> {
    Indices acquires;
    Indices releases;
    for (const std::size_t i : some) {
      (batch_[i].verb == Verb::acquire ? acquires : releases).push_back(i);
    }
    // Each its own transaction, as above.
    for (const auto& [gained, given] :
         {std::pair(acquires, Indices()), std::pair(Indices(), releases)}) {
      if (gained.empty() && given.empty()) continue;
      const auto rows = run(kQuickNoted, quick_noted_params(pick(gained), pick(given), at_));
      if (!rows) return leave_to_the_long_way(rows.error());
      settle_by_key(*rows, some);
    }
    return {};
  });
}

Result<void> BatchRun::send_renewals(const Indices& renewals) {
  const Params params = grants_params(pick(renewals), at_);
  auto rows = run(kQuickRenew, params);
  if (!rows && rolled_back(rows.error()) && is_locked_out(connection_->state())) {
    rows = run(kRenewUnlocked, params);
  }
  if (!rows) return leave_to_the_long_way(rows.error());
  settle_by_key(*rows, renewals);
  return {};
}

// `requests` are sorted by key, as all that go the short way.
void BatchRun::settle_by_key(const Rows& rows, const Indices& requests) {
  for (int row = 0; row < rows.size(); ++row) {
    const std::size_t index = index_of(rows.text(row, 0), requests);
    replies_[index] = quick_reply(rows, row);
    settled_[index] = true;
    answered_ = true;
  }
}

std::size_t BatchRun::index_of(std::string_view key, const Indices& sorted) const {
  const auto found = std::lower_bound(
      sorted.begin(), sorted.end(), key,
      [&](std::size_t index, auto wanted) { return batch_[index].targets[0].key < wanted; });
  if (found == sorted.end() || batch_[*found].targets[0].key != key) {
    throw std::runtime_error("a reply for a name that was not asked for");
  }
  return *found;
}

// A statement that failed as a whole was rolled back as a whole. Sent one by one, only what is
// really at fault fails again.
Result<void> BatchRun::send_slow(const Indices& requests) {
  const Batch batch = pick(requests);
  const Params params = apply_params(batch, at_);
  auto rows = run(kApply, params);
  for (int i = 1; i < kTries && !rows && batch.size() == 1 && rolled_back(rows.error()) &&
                  is_conflict(connection_->state());
       ++i) {
    rows = run(kApply, params);
  }
  if (!rows) {
    const bool alone = batch.size() == 1;
    if (!rolled_back(rows.error()) || rows.error().code == Code::unauthorized) return rows.error();
    if (!alone && too_late_to_send()) return rows.error();
    if (!alone) return send_apart(requests);
    if (!is_bad_data(connection_->state())) return rows.error();
    give_up_on(requests[0], rows.error());
    return {};
  }
  answered_ = true;
  for (int row = 0; row < rows->size(); ++row) {
    auto [ord, reply] = reply_of(*rows, row, batch);
    replies_[requests[ord]] = std::move(reply);
    settled_[requests[ord]] = true;
  }
  return {};
}

Result<void> BatchRun::leave_to_the_long_way(const Error& error) const {
  const bool curable = error.retryable || is_bad_data(connection_->state());
  return rolled_back(error) && curable ? Result<void>{} : error;
}

// A row that is locked for long must not cost the others their time: nobody waits for it again.
Result<void> BatchRun::send_apart(const Indices& requests) {
  if (auto set = connection_->script("SET lock_timeout = 50", deadline_); !set) return set.error();
  Result<void> failed;
  try {
    for (const std::size_t index : requests) {
      auto sent = send_slow({index});
      if (sent) continue;
      if (!rolled_back(sent.error())) return sent;
      if (failed) failed = sent;
    }
  } catch (...) {
    connection_->give_up();  // nobody shall get it as it is
    throw;
  }
  const std::string usual = std::to_string(settings_.lock_timeout().count());
  if (auto set = connection_->script("SET lock_timeout = " + usual, deadline_); !set) {
    return set.error();
  }
  return failed;
}

// The others have their replies, so this one needs one too, and the most honest is: not now.
void BatchRun::give_up_on(std::size_t index, const Error& error) {
  Reply& reply = replies_[index];
  reply.message = error.message;
  reply.outcome = Outcome::invalid;
  if (error.retryable) {
    reply.outcome = batch_[index].verb == Verb::claim ? Outcome::queued : Outcome::busy;
    reply.retry_after = Millis(200);
  }
  settled_[index] = true;
}

}  // namespace baton::store::postgres
