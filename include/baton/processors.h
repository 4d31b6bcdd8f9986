#pragma once

// Named processors of an event log (baton/event_log.h): views, which keep tables up to date, and
// publishers, which tell others. Each reads all events in the order of their positions, in batches,
// and saves its progress in the transaction of what it does.
//
//   baton::Processors processors(locks, "postgres://localhost/shop", "shop");
//   processors.add_view("totals", {"order_totals"}, [](baton::EventBatch& batch) {
//     const std::string table = batch.table("order_totals");
//     for (const auto& logged : batch.events()) add_to(batch.postgres(), table, logged);
//     return baton::Result<void>();
//   });
//   processors.run(stop);
//
//              the handler fails (backoff)        attempts used up, or pause
//   RUNNING ◀────────────────────────────▶ RUNNING ──────────────────────────▶ PAUSED
//      ▲                                                                          │
//      └────────────────────────────── resume ────────────────────────────────────┘
//
// Of the replicas of a module, one runs its processors: one elected leader runs all of them, or
// they are spread by Partitions. Each batch is one transaction that begins with the fence, locks
// the processor's row, calls the handler and saves the position of the last event: a former owner
// that was paused writes nothing, and whatever dies, view and progress agree.
//
// On PostgreSQL readers stay behind events that can still become visible (see docs/event-log.md):
// a transaction that has opened the log for writing stalls all processors until it ends, and is
// shown. A session for each processor, not behind a transaction pooler.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "baton/event_log.h"
#include "baton/fence_token.h"
#include "baton/locks.h"
#include "baton/outbox.h"

namespace baton {

namespace eventlog {
class BatchState;
class ProcessorSet;
}  // namespace eventlog

// What a handler gets: events in order, inside the transaction that saves the progress. Valid until
// the handler returns.
class BATON_EXPORT EventBatch {
 public:
  explicit EventBatch(eventlog::BatchState& state) : state_(state) {}

  [[nodiscard]] std::span<const LoggedEvent> events() const;
  [[nodiscard]] const std::string& processor() const;

  // The transaction; null for the other kind of database. The handler neither commits it nor rolls
  // it back.
  [[nodiscard]] pg_conn* postgres() const;
  [[nodiscard]] sqlite3* sqlite() const;

  // True while a view is built again: its tables are others, and it must tell nobody.
  [[nodiscard]] bool rebuilding() const;
  // What to write to in place of a table of the view: in a rebuild, its new copy.
  [[nodiscard]] std::string table(std::string_view name) const;

  // Adds an event to the outbox in this transaction; does nothing in a rebuild.
  Result<void> publish(const Outbox& outbox, const Event& event);

 private:
  eventlog::BatchState& state_;
};

// An error or an exception rolls the batch back. Then its events are handled one by one, so that
// the one that fails is found.
using EventHandler = std::function<Result<void>(EventBatch&)>;

enum class ProcessorOwnership : std::uint8_t {
  elected,      // one replica leads, `leader/processors/{module}`, and runs all
  partitioned,  // spread over the replicas by `processors/{module}`
};

struct ProcessorsOptions {
  ProcessorOwnership ownership = ProcessorOwnership::elected;
  std::size_t partitions = 16;  // the same in all replicas
  std::size_t batch = 100;      // events, at most kMaxAppend
  Millis poll_interval{50};     // between looks at the log
  int max_attempts = 5;         // of one event, then its processor is paused
  Millis first_delay{200};      // before the second; doubles up to max_delay
  Millis max_delay{30'000};
  Millis handler_timeout{30'000};  // of one batch; the server ends what takes longer
  Millis ttl{10'000};              // if a replica dies, another takes over after this long
  std::string region = std::string(kDefaultRegion);

  // Called on threads of this class: be quick, do not throw, do not call stop().
  std::function<void(const std::string& processor, const Error&)> on_error = {};
  // This processor has been paused because one event fails.
  std::function<void(const std::string& processor, const Error&)> on_paused = {};
};

class BATON_EXPORT Processors {
 public:
  // `database` has the event log: postgres://… or sqlite:PATH. The locks may be elsewhere.
  Processors(LockClient locks, std::string database, std::string module,
             ProcessorsOptions options = {});
  ~Processors();  // stops
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;

  // Before run(). `bad_request`: a name that is no identifier of up to 48 characters (a to z, 0 to
  // 9, _), or is taken. `tables` are what the view writes to, which makes it resettable and
  // rebuildable: tables in the first schema of the search path, written to by nobody else.
  Result<void> add_view(std::string name, std::vector<std::string> tables, EventHandler handler);
  // Its name is `topic.publisher`. What it tells others outside of the transaction it may tell
  // twice.
  Result<void> add_publisher(std::string topic, std::string publisher, EventHandler handler);

  // Takes part until it is stopped, by `stop` or by stop(). Databases and stores in trouble never
  // end it; they are told to on_error. An error means that it cannot work as it is.
  Result<void> run(const std::stop_token& stop = {});
  void stop();  // for good; returns when run() is about to. Not from a handler or a callback

 private:
  std::shared_ptr<eventlog::ProcessorSet> set_;
};

// A processor as its database shows it.
struct ProcessorState {
  std::string name;
  std::string kind;    // view or publisher
  std::string status;  // RUNNING or PAUSED
  std::vector<std::string> tables;
  std::int64_t position = 0;
  std::int64_t head = 0;  // the last position of the log
  std::int64_t lag = 0;   // events that wait, counted up to 100,000
  Millis oldest_age{0};   // of the first of them
  std::string owner;      // who runs it; empty: nobody yet
  Token owner_token = 0;
  Millis owned_for{0};
  Millis seen_ago{0};  // since its owner was last heard of; it says so every 5 s
  int attempts = 0;    // of the event that fails
  std::string last_error;
  std::int64_t error_position = 0;
  std::string rebuild_status;  // REQUESTED, RUNNING, FAILED; empty: none
  std::int64_t rebuild_position = 0;
  std::string rebuild_error;
  std::string stalled_by;  // the transaction that it waits for, with pid and age
  Millis stalled_for{0};
};

// For operators: works on the tables, wherever the processors run. Not thread-safe.
class BATON_EXPORT ProcessorAdmin {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ProcessorAdmin>> open(const std::string& database);
  virtual ~ProcessorAdmin() = default;

  virtual Result<void> install() = 0;  // see install_event_log
  // All, or the one of that name; by name.
  virtual Result<std::vector<ProcessorState>> list(std::string_view name = {}) = 0;

  // `bad_request`: there is no such processor. They wait for a batch that is under way.
  virtual Result<void> pause(const std::string& name) = 0;
  // Also the event that failed is tried again, with all its attempts.
  virtual Result<void> resume(const std::string& name) = 0;
  // From the first event on. A view's tables are emptied in the same transaction; a publisher tells
  // everything again.
  virtual Result<void> reset(const std::string& name) = 0;
  // Asks the owner of a view to build its tables again beside the old ones, which stay up to date
  // until the new ones take their place in one transaction.
  virtual Result<void> rebuild(const std::string& name) = 0;
};

}  // namespace baton
