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

constexpr std::size_t kPlainChunk = 1000;
constexpr std::size_t kChunk = 200;  // with notes, or for apply
constexpr int kTries = 3;            // of one request that the server rolled back to end a deadlock

// Requests for one name without a note that a fast path may answer.
bool is_plain(const Request& request) {
  if (request.targets.size() != 1 || !request.change.empty()) return false;
  switch (request.verb) {
    case Verb::acquire: return !request.if_ordinal_below && schema_version_of(request).has_value();
    case Verb::claim: return schema_version_of(request).has_value();
    case Verb::renew:
    case Verb::get: return true;
    case Verb::release: return request.to.empty();
    default: return false;
  }
}

// The same with a note to compare or write.
bool is_noted(const Request& request) {
  if (request.targets.size() != 1) return false;
  if (request.verb == Verb::release) return !request.change.empty() && request.to.empty();
  return request.verb == Verb::acquire && schema_version_of(request).has_value() &&
         (request.if_ordinal_below || !request.change.empty());
}

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

BatchRun::BatchRun(std::span<const Request> batch, TestClock now, const Settings& settings,
                   NameHints& hints)
    : entered_(BootClock::now()),
      batch_(batch),
      now_(now),
      settings_(settings),
      hints_(hints),
      replies_(batch.size()),
      answered_(batch.size()) {
  choose_fast_paths();
}

void BatchRun::choose_fast_paths() {
  DuplicateKeys<std::string_view> names;
  bool changes_schema = false;
  plain_renewals_only_ = true;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (auto rule = core::broken_rule(batch_[i])) {
      replies_[i].message = std::move(*rule);
      answered_[i] = true;
      continue;
    }
    changes_schema = changes_schema || batch_[i].targets[0].key == core::kSchemaKey;
    plain_renewals_only_ =
        plain_renewals_only_ && batch_[i].verb == Verb::renew && batch_[i].change.empty();
    if (batch_.size() == 1) continue;
    for (const Target& target : batch_[i].targets) names.add(target.key);
  }
  names.count();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const Request& request = batch_[i];
    if (answered_[i] || changes_schema || names.more_than_once(request.targets[0].key)) continue;
    if (is_plain(request)) plain_.push_back(i);
    if (is_noted(request)) noted_.push_back(i);
  }
  // All sessions lock rows in the order of the keys, so that they never deadlock.
  for (Indices* some : {&plain_, &noted_}) {
    std::sort(some->begin(), some->end(), [&](std::size_t a, std::size_t b) {
      return batch_[a].targets[0].key < batch_[b].targets[0].key;
    });
  }
}

Result<std::vector<Reply>> BatchRun::send(Connection& connection, Deadline deadline) {
  connection_ = &connection;
  deadline_ = std::min(deadline, limit());
  if (auto sent = send_fast(); !sent) {
    sent.error().in_doubt = sent.error().in_doubt || any_answered_;
    return sent.error();
  }
  return send_rest();
}

Result<void> BatchRun::send_fast() {
  if (batch_.size() == 1 && !plain_.empty()) {
    if (batch_[0].verb == Verb::acquire) return send_lone_acquire(batch_[0]);
    if (batch_[0].verb == Verb::release) return send_lone_release(batch_[0]);
  }
  auto sent = in_chunks(plain_, kPlainChunk, [&](const Indices& some) { return send_plain(some); });
  if (!sent) return sent;
  return in_chunks(noted_, kChunk, [&](const Indices& some) { return send_noted(some); });
}

Result<void> BatchRun::send_lone_acquire(const Request& request) {
  const std::string& key = request.targets[0].key;
  if (hints_.is_contended(key)) return {};
  for (const StatementId id : statements_for(request)) {
    const auto rows = run(id, {&request});
    if (!rows) return fall_back(rows.error());
    if (rows->size() == 0) continue;
    answer_acquire(0, id == StatementId::busy ? busy_reply(*rows, 0) : acquire_reply(*rows, 0));
    break;
  }
  if (!answered_[0]) hints_.contended(key);
  return {};
}

// Usually the first one answers. A request that wants to queue is not helped by knowing the holder.
std::vector<StatementId> BatchRun::statements_for(const Request& lone_acquire) const {
  const std::string& key = lone_acquire.targets[0].key;
  const bool queues = lone_acquire.queue_ttl > Millis{0};
  if (hints_.may_be_free(key)) {
    if (queues) return {StatementId::acquire};
    return {StatementId::acquire, StatementId::busy};
  }
  if (hints_.was_busy(key) && !queues) return {StatementId::busy, StatementId::acquire_new};
  return {StatementId::acquire_new};
}

Result<void> BatchRun::send_lone_release(const Request& request) {
  const std::string& key = request.targets[0].key;
  if (hints_.is_contended(key)) return {};
  const auto rows = run(StatementId::release, {&request});
  if (!rows) return fall_back(rows.error());
  if (rows->affected() == 0) {
    hints_.contended(key);
    return {};
  }
  Reply reply;
  reply.outcome = Outcome::done;
  answer(0, std::move(reply));
  hints_.found_free(key);
  return {};
}

// A transaction for each verb: in one for all, rows would not be locked in the order of the keys.
Result<void> BatchRun::send_plain(const Indices& requests) {
  if (auto sent = send_acquires(of_verb(requests, Verb::acquire)); !sent) return sent;
  for (const auto& [id, verb] :
       {std::pair(StatementId::release_many, Verb::release),
        std::pair(StatementId::claim, Verb::claim), std::pair(StatementId::renew, Verb::renew),
        std::pair(StatementId::get, Verb::get)}) {
    if (auto sent = send_many(id, of_verb(requests, verb)); !sent) return sent;
  }
  return {};
}

Result<void> BatchRun::send_acquires(Indices acquires) {
  if (acquires.size() > 1 && mostly_free(acquires) && on_same_terms(acquires)) {
    if (auto sent = send_many(StatementId::acquire_many, acquires); !sent) return sent;
    std::erase_if(acquires, [&](std::size_t i) { return answered_[i]; });
  }
  return send_many(StatementId::acquire_new_many, acquires);
}

Result<void> BatchRun::send_noted(const Indices& requests) {
  auto sent = send_many(StatementId::acquire_noted, of_verb(requests, Verb::acquire));
  if (!sent) return sent;
  return send_many(StatementId::release_noted, of_verb(requests, Verb::release));
}

// `requests` are sorted by key. The statement's rows begin with the key that they answer.
Result<void> BatchRun::send_many(StatementId id, const Indices& requests) {
  if (requests.empty()) return {};
  const auto rows = run(id, pick(requests));
  if (!rows) return fall_back(rows.error());
  for (int row = 0; row < rows->size(); ++row) {
    const std::size_t index = index_of(rows->text(row, 0), requests);
    if (batch_[index].verb == Verb::acquire) {
      answer_acquire(index, acquire_reply(*rows, row));
    } else if (id == StatementId::get) {
      answer(index, get_reply(*rows, row));
    } else {
      answer(index, grant_reply(*rows, row));
    }
  }
  return {};
}

// Has the requests answered that no fast path answered, in the order of the batch.
Result<std::vector<Reply>> BatchRun::send_rest() {
  Result<void> failed;
  auto sent = in_chunks(unanswered(), kChunk, [&](const Indices& some) {
    auto chunk = send_apply(some);
    if (chunk || !rolled_back(chunk.error())) return chunk;
    failed = chunk;
    return Result<void>{};
  });
  if (sent && failed) return std::move(replies_);
  Error error = sent ? failed.error() : sent.error();
  if (any_answered_ && rolled_back(error)) {
    for (const std::size_t index : unanswered()) give_up_on(index, error);
    return std::move(replies_);
  }
  error.in_doubt = error.in_doubt || any_answered_;
  return error;
}

// A statement that failed was rolled back as a whole. Sent one by one, only the requests that
// caused the failure fail again.
Result<void> BatchRun::send_apply(const Indices& requests) {
  const Batch batch = pick(requests);
  const bool lone = batch.size() == 1;
  const StatementId id = lone ? StatementId::apply_one : StatementId::apply;
  auto rows = run(id, batch);
  for (int i = 1; i < kTries && !rows && lone && rolled_back(rows.error()) &&
                  is_conflict(connection_->state());
       ++i) {
    rows = run(id, batch);
  }
  if (!rows) {
    if (!rolled_back(rows.error()) || rows.error().code == Code::unauthorized) return rows.error();
    if (!lone && too_late_to_send()) return rows.error();
    if (!lone) return send_one_by_one(requests);
    if (!is_bad_data(connection_->state())) return rows.error();
    give_up_on(requests[0], rows.error());
    return {};
  }
  any_answered_ = true;
  for (int row = 0; row < rows->size(); ++row) {
    auto [index, reply] = apply_reply(*rows, row, batch);
    answer(requests.at(index), std::move(reply));
  }
  return {};
}

// With a short lock timeout: a row that stays locked must not cost every other request its time.
Result<void> BatchRun::send_one_by_one(const Indices& requests) {
  if (auto set = connection_->script("SET lock_timeout = 50", deadline_); !set) return set.error();
  Result<void> failed;
  try {
    for (const std::size_t index : requests) {
      auto sent = send_apply({index});
      if (sent) continue;
      if (!rolled_back(sent.error())) return sent;
      if (failed) failed = sent;
    }
  } catch (...) {
    connection_->give_up();  // its lock timeout is still the short one
    throw;
  }
  const std::string usual = std::to_string(settings_.lock_timeout().count());
  if (auto set = connection_->script("SET lock_timeout = " + usual, deadline_); !set) {
    return set.error();
  }
  return failed;
}

// Prepares before it checks the time: preparing may take as long as a statement may, and the
// statement must not be sent too late.
Result<Rows> BatchRun::run(StatementId id, const Batch& requests) {
  if (auto prepared = connection_->prepare(statement(id), deadline_); !prepared) {
    return prepared.error();
  }
  if (too_late_to_send()) {
    return Error{.code = Code::unavailable,
                 .message = settings_.location + " is too busy to be asked in time",
                 .retryable = true};
  }
  return connection_->run(statement(id), bind(id, requests, now_), deadline_);
}

bool BatchRun::too_late_to_send() const {
  return BootClock::now() > entered_ + settings_.send_limit();
}

// Nothing of the statement has happened, and the session is in order.
bool BatchRun::rolled_back(const Error& error) const {
  return !error.in_doubt && connection_->usable();
}

// Whether apply may still answer the requests for which a fast path failed. A lone request that has
// waited in vain for a row lock does not wait a second time.
Result<void> BatchRun::fall_back(const Error& error) const {
  const bool waits_again = batch_.size() == 1 && is_locked_out(connection_->state());
  const bool curable = error.retryable || is_bad_data(connection_->state());
  return rolled_back(error) && curable && !waits_again ? Result<void>{} : error;
}

BatchRun::Indices BatchRun::of_verb(const Indices& requests, Verb verb) const {
  Indices some;
  std::copy_if(requests.begin(), requests.end(), std::back_inserter(some),
               [&](std::size_t i) { return batch_[i].verb == verb; });
  return some;
}

bool BatchRun::may_be_free(std::size_t index) const {
  return hints_.may_be_free(batch_[index].targets[0].key);
}

bool BatchRun::mostly_free(const Indices& acquires) const {
  const auto free = std::count_if(acquires.begin(), acquires.end(),
                                  [&](std::size_t i) { return may_be_free(i); });
  return static_cast<std::size_t>(free) * 2 >= acquires.size();
}

bool BatchRun::on_same_terms(const Indices& acquires) const {
  return std::all_of(acquires.begin(), acquires.end(),
                     [&](std::size_t i) { return same_terms(batch_[i], batch_[acquires[0]]); });
}

BatchRun::Indices BatchRun::unanswered() const {
  Indices rest;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (!answered_[i]) rest.push_back(i);
  }
  return rest;
}

void BatchRun::answer(std::size_t index, Reply reply) {
  replies_[index] = std::move(reply);
  answered_[index] = any_answered_ = true;
}

void BatchRun::answer_acquire(std::size_t index, Reply reply) {
  const Request& request = batch_[index];
  const bool busy = reply.outcome == Outcome::busy;
  busy ? hints_.found_busy(request.targets[0].key) : hints_.found_free(request.targets[0].key);
  const bool wants_to_queue = busy && request.queue_ttl > Millis{0};
  if (!wants_to_queue && !answered_[index]) answer(index, std::move(reply));
}

// The other requests have replies, so this one needs a reply too: invalid if its data is at fault,
// otherwise busy, so that the caller asks again.
void BatchRun::give_up_on(std::size_t index, const Error& error) {
  Reply& reply = replies_[index];
  reply.message = error.message;
  reply.outcome = Outcome::invalid;
  if (error.retryable) {
    reply.outcome = batch_[index].verb == Verb::claim ? Outcome::queued : Outcome::busy;
    reply.retry_after = Millis(200);
  }
  answered_[index] = true;
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

Batch BatchRun::pick(const Indices& indices) const {
  Batch picked;
  picked.reserve(indices.size());
  for (const std::size_t index : indices) picked.push_back(&batch_[index]);
  return picked;
}

}  // namespace baton::store::postgres
