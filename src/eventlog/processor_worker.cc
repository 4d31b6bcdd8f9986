#include "eventlog/processor_worker.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "eventlog/view_tables.h"

namespace baton::eventlog {
namespace {

constexpr Millis kHeartbeat{5'000};
constexpr Millis kReopen{200};
constexpr Millis kShownAsStalled{1'000};
constexpr int kMaxConflicts = 20;  // of one batch in a row; then the handler has failed

void wait(const std::stop_token& stop, Millis time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any woken;
  woken.wait_for(lock, stop, time, [] { return false; });
}

// A conflict with another session: nobody's failure, the same is simply done again.
bool is_conflict(const sql::Connection& connection) {
  return connection.sqlstate() == "40001" || connection.sqlstate() == "40P01";
}

Millis delay_after(const ProcessorsOptions& options, int attempts) {
  const int doublings = std::clamp(attempts - 1, 0, 20);
  return std::min(options.first_delay * (std::int64_t{1} << doublings), options.max_delay);
}

std::string about_event(const LoggedEvent& event) {
  return event.event.type + " " + event.event.id + " of " + event.event.aggregate +
         " at position " + std::to_string(event.position);
}

}  // namespace

ProcessorWorker::ProcessorWorker(const ProcessorSpec& spec, Registration registration,
                                 std::string database, const ProcessorsOptions& options)
    : spec_(spec),
      registration_(std::move(registration)),
      database_(std::move(database)),
      options_(options) {}

void ProcessorWorker::report(const Error& error) {
  if (options_.on_error && error.message != last_reported_) options_.on_error(spec_.name, error);
  last_reported_ = error.message;
}

void ProcessorWorker::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!session_) {
      auto opened = LogSession::open(database_, registration_, options_.handler_timeout);
      if (!opened) {
        report(opened.error());
        if (opened.error().code == Code::fenced) return;
        wait(stop, kReopen);
        continue;
      }
      session_ = std::move(*opened);
      nothing_up_to_ = -1;
      stalled_since_.reset();
      stall_saved_ = false;
    }
    const auto passed = pass();
    if (passed) {
      last_reported_.clear();
      if (*passed == Pass::idle) wait(stop, options_.poll_interval);
      continue;
    }
    report(passed.error());
    // Somebody newer owns it: the lease is over, and its holder will say so.
    if (passed.error().code == Code::fenced) break;
    if (!session_->connection().usable() || passed.error().in_doubt) session_.reset();
    wait(stop, kReopen);
  }
  session_.reset();
}

Result<ProcessorWorker::Pass> ProcessorWorker::pass() {
  auto row = session_->look();
  if (!row) return row.error();
  if (auto alive = say_alive(); !alive) return alive.error();
  Pass result = Pass::idle;
  const bool due = BootClock::now() >= not_before_ || row->attempts == 0;
  if (row->running && due && session_->frontier() != nothing_up_to_) {
    auto done = handle_next(*row);
    if (!done) return done;
    result = *done;
  }
  if (row->rebuild_status == "REQUESTED" || row->rebuild_status == "RUNNING") {
    auto done = rebuild_next(*row);
    if (!done) return done;
    if (*done == Pass::busy) result = Pass::busy;
  } else {
    rebuild_attempts_ = 0;
    rebuild_one_by_one_to_ = 0;
  }
  return result;
}

Result<ProcessorWorker::Pass> ProcessorWorker::handle_next(const ProcessorRow& seen) {
  const Position frontier = session_->frontier();
  std::optional<Error> failure;
  std::vector<LoggedEvent> events;
  ProcessorRow row;
  {
    auto transaction = session_->begin();
    if (!transaction) return transaction.error();
    auto locked = session_->lock_row(*transaction);
    if (!locked) return locked.error();
    row = *locked;
    if (!row.running || row.position != seen.position) return Pass::busy;
    const std::size_t size = row.position < one_by_one_to_ || row.attempts > 0 ? 1 : options_.batch;
    auto read = session_->read(*transaction, row.position, frontier, size);
    if (!read) return read.error();
    if (read->empty()) {
      nothing_up_to_ = frontier;
      return Pass::idle;
    }
    events = *read;
    auto done = call(*transaction, std::move(*read), false);
    if (done) done = session_->save(*transaction, events.back().position);
    if (done) {
      auto committed = transaction->commit();
      if (committed) conflicts_ = 0;
      if (committed) return Pass::busy;
      // Deferred constraints speak up only here.
      if (committed.error().in_doubt) return committed.error();
      done = committed;
    }
    if (done.error().code == Code::fenced) return done.error();
    failure = done.error();
  }
  if (!session_->connection().usable()) return *failure;
  if (is_conflict(session_->connection()) && ++conflicts_ <= kMaxConflicts) return Pass::busy;
  conflicts_ = 0;
  if (events.size() > 1) {
    one_by_one_to_ = events.back().position;
    return Pass::busy;
  }
  const int attempts = row.attempts + 1;
  const bool pause = attempts >= options_.max_attempts;
  failure->message = about_event(events.front()) + ": " + failure->message;
  not_before_ = BootClock::now() + delay_after(options_, attempts);
  auto saved = session_->save_failure(events.front().position, attempts, pause, failure->message);
  if (!saved) return saved.error();
  if (pause && options_.on_paused) {
    options_.on_paused(spec_.name, *failure);
  } else if (!pause) {
    report(*failure);
  }
  return Pass::idle;
}

Result<void> ProcessorWorker::call(sql::Transaction& transaction, std::vector<LoggedEvent> events,
                                   bool rebuilding) {
  BatchState state;
  state.events = std::move(events);
  state.spec = &spec_;
  state.connection = &transaction.connection();
  state.rebuilding = rebuilding;
  EventBatch batch(state);
  try {
    return spec_.handler(batch);
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_request, .message = problem.what()};
  } catch (...) {
    return Error{.code = Code::bad_request, .message = "the handler threw something unknown"};
  }
}

Result<void> ProcessorWorker::begin_rebuild() {
  auto transaction = session_->begin();
  if (!transaction) return transaction.error();
  auto row = session_->lock_row(*transaction);
  if (!row) return row.error();
  if (row->rebuild_status != "REQUESTED") return {};
  if (auto made = make_copies(*transaction, spec_.tables); !made) return made;
  auto begun = transaction->query(
      "UPDATE event_processor SET rebuild_status = 'RUNNING', rebuild_position = 0,"
      " rebuild_error = NULL WHERE name = $1",
      {spec_.name});
  if (!begun) return begun.error();
  return transaction->commit();
}

Result<ProcessorWorker::Pass> ProcessorWorker::rebuild_next(const ProcessorRow& seen) {
  std::optional<Error> failure;
  std::vector<LoggedEvent> events;
  if (seen.rebuild_status == "REQUESTED") {
    auto begun = begin_rebuild();
    if (begun) return Pass::busy;
    if (begun.error().code == Code::fenced) return begun.error();
    failure = begun.error();
    rebuild_attempts_ = options_.max_attempts;
  } else {
    auto transaction = session_->begin();
    if (!transaction) return transaction.error();
    auto row = session_->lock_row(*transaction);
    if (!row) return row.error();
    if (row->rebuild_status != "RUNNING") return Pass::busy;
    const std::size_t size = row->rebuild_position < rebuild_one_by_one_to_ ? 1 : options_.batch;
    // No further than the view itself: when there is no more, both say the same.
    auto read = session_->read(*transaction, row->rebuild_position, row->position, size);
    if (!read) return read.error();
    events = *read;
    Result<void> done;
    if (events.empty()) {
      done = swap_in_copies(*transaction, spec_.tables);
      if (done) {
        auto ended = transaction->query(
            "UPDATE event_processor SET rebuild_status = NULL, rebuild_position = NULL,"
            " rebuild_error = NULL WHERE name = $1",
            {spec_.name});
        if (!ended) done = ended.error();
      }
    } else {
      done = call(*transaction, std::move(*read), true);
      if (done) done = session_->save_rebuild(*transaction, events.back().position);
    }
    if (done) {
      done = transaction->commit();
      if (done) conflicts_ = 0;
      if (done) return Pass::busy;
      if (done.error().in_doubt) return done.error();
    }
    if (done.error().code == Code::fenced) return done.error();
    failure = done.error();
  }
  if (!session_->connection().usable()) return *failure;
  if (is_conflict(session_->connection()) && ++conflicts_ <= kMaxConflicts) return Pass::busy;
  conflicts_ = 0;
  if (events.size() > 1) {
    rebuild_one_by_one_to_ = events.back().position;
    return Pass::busy;
  }
  if (!events.empty()) failure->message = about_event(events.front()) + ": " + failure->message;
  report(*failure);
  if (++rebuild_attempts_ < options_.max_attempts) return Pass::idle;
  rebuild_attempts_ = 0;
  auto saved = session_->fail_rebuild(failure->message);
  if (!saved) return saved.error();
  return Pass::idle;
}

// Also says since when and by whom the log is stalled: at once, when that has begun or ended.
Result<void> ProcessorWorker::say_alive() {
  const auto now = BootClock::now();
  auto by = session_->stalled_by();
  if (!by) return by.error();
  if (by->empty()) {
    stalled_since_.reset();
  } else if (!stalled_since_) {
    stalled_since_ = now;
  }
  const Millis stalled_for =
      stalled_since_ ? std::chrono::duration_cast<Millis>(now - *stalled_since_) : Millis(0);
  const bool stalled = stalled_for >= kShownAsStalled;
  if (now < next_heartbeat_ && stalled == stall_saved_) return {};
  auto said = session_->heartbeat(stalled ? *by : std::string(), stalled_for);
  if (!said) return said;
  next_heartbeat_ = now + kHeartbeat;
  stall_saved_ = stalled;
  return {};
}

}  // namespace baton::eventlog
