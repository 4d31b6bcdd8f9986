#pragma once

// Handles the events of a queue, each with exactly one effect in the service's own database.
//
//   auto broker = baton::Broker::open("rabbitmq://…").value();
//   baton::Consumer validation(broker, "postgres://…/validation",
//       {.name = "validation", .queue = "document.uploaded.q", .exchange = "documents",
//        .bind = {"document.uploaded"}},
//       [](baton::Handling& handling) -> baton::Handled {
//         … PQexecParams(handling.postgres(), …) …
//         handling.outbox().add({.type = "DocumentValidated", .aggregate = id}).value();
//         return baton::done();
//       });
//   validation.run(stop);
//
// What happened to a delivery is decided in one transaction of the service's database, which has
// the tables of baton/inbox.h, and only then is it acknowledged:
//
//   the handler succeeds         its writes, its events and the id of the event are committed
//   a business error             the same: it is handled, and never tried again
//   a technical failure          rolled back; tried again after 1, 2, 4, 8 and 10 s, then DEAD with
//                                on_give_up in the same transaction
//   a duplicate                  acknowledged
//   a message that is no event   DEAD at once, with its bytes and the reason
//   the database is away         the consumer waits: nothing is acknowledged, no retry is used
//   ten different events fail    one at a time is tried until one succeeds, and no retry is used
//                                in the first two hours of an event's trouble
//   the process dies             the broker delivers again; an event that kills the process again
//                                and again ends as DEAD, like one that fails
//
// Promised: one effect of each event in that database, if ids are not sent again after the
// deduplication window; and with ConsumerOptions::ordered, the order of the events of an aggregate.
// Not promised: any other order, and effects outside of the database, which a crash can repeat. The
// handlers of up to `batch` events share a transaction; if one fails, all are rolled back and run
// again, each alone.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "baton/broker.h"
#include "baton/clock.h"
#include "baton/event.h"
#include "baton/export.h"
#include "baton/outbox.h"
#include "baton/result.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;

namespace baton {

namespace inbox {
class ConsumerLoop;
}

// What a handler has made of an event.
class BATON_EXPORT Handled {
 public:
  enum class How : std::uint8_t { done, business_error, failed };
  Handled(How how, std::string reason) : how_(how), reason_(std::move(reason)) {}

  [[nodiscard]] How how() const { return how_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  How how_;
  std::string reason_;
};

[[nodiscard]] inline Handled done() { return {Handled::How::done, {}}; }
// The event is refused for good, as by a rule of the business: everything that the handler wrote is
// committed, and the outcome is `rejected`.
[[nodiscard]] inline Handled business_error(std::string reason) {
  return {Handled::How::business_error, std::move(reason)};
}
// A technical failure, as is anything that the handler throws: it is tried again.
[[nodiscard]] inline Handled failed(std::string reason) {
  return {Handled::How::failed, std::move(reason)};
}

// An event in the hands of a handler, valid until it returns.
//
// The transaction is open, and belongs to the consumer: a handler that ends it, or leaves it
// failed, has failed; so has one that loses the session each time that it runs, or leaves a role or
// settings (SET LOCAL) with which the consumer cannot write its tables. On PostgreSQL messages of
// errors are verbose, with their SQLSTATE: a serialization failure or a deadlock (40001, 40P01) is
// repeated at once and uses no retry.
class BATON_EXPORT Handling {
 public:
  struct Parts {
    const Event* event = nullptr;
    const Message* message = nullptr;
    int attempt = 1;
    std::string_view last_error;
    pg_conn* postgres = nullptr;
    sqlite3* sqlite = nullptr;
    const Outbox* outbox = nullptr;
    Deadline deadline{};
  };
  explicit Handling(const Parts& parts) : parts_(parts) {}

  [[nodiscard]] const Event& event() const { return *parts_.event; }
  [[nodiscard]] const Message& message() const { return *parts_.message; }
  [[nodiscard]] int attempt() const { return parts_.attempt; }  // from 1
  // Why the last attempt failed: for on_give_up.
  [[nodiscard]] std::string_view last_error() const { return parts_.last_error; }
  // When the consumer ends the transaction under the handler.
  [[nodiscard]] Deadline deadline() const { return parts_.deadline; }

  // The open transaction; null for the other kind of database.
  [[nodiscard]] pg_conn* postgres() const { return parts_.postgres; }
  [[nodiscard]] sqlite3* sqlite() const { return parts_.sqlite; }

  // The outbox of the service, bound to the transaction. What is added belongs to the same request
  // (correlation_id, traceparent) and was caused by this event (causation_id), unless it says
  // otherwise. Errors are those of Outbox::add.
  class BATON_EXPORT BoundOutbox {
   public:
    Result<std::string> add(Event event) const;
    Result<std::vector<std::string>> add_all(std::vector<Event> events) const;

   private:
    friend class Handling;
    explicit BoundOutbox(const Parts& parts) : parts_(&parts) {}
    const Parts* parts_;
  };
  [[nodiscard]] BoundOutbox outbox() const { return BoundOutbox(parts_); }

 private:
  Parts parts_;
};

// What of a consumer is in inbox_events, of all its replicas.
struct InboxCounts {
  std::int64_t retry = 0;  // tried again later
  std::int64_t held = 0;   // behind an earlier event of their aggregate
  std::int64_t dead = 0;   // dead letters
};

// What a consumer tells logs and metrics. `message` is stable: EVENT_RECEIVED, EVENT_PROCESSED,
// BUSINESS_VALIDATION_FAILED, EVENT_SKIPPED_IDEMPOTENT, TECHNICAL_FAILURE, EVENT_DEAD, …
struct ConsumerNote {
  enum class Kind : std::uint8_t {
    received,  // a delivery is about to be handled; again if the database went away meanwhile
    processed,
    rejected,        // a business error
    skipped,         // a duplicate
    failed,          // and will be tried again
    kept,            // put into inbox_events before it was handled: it may have killed a process
    held,            // behind an earlier event of its aggregate that is in trouble
    dead,            // given up
    poison,          // no event
    hook_failed,     // on_give_up; tried again later
    paused,          // the database is away
    resumed,         // and is there again
    broker_lost,     // and is asked again
    breaker_opened,  // many events fail: one at a time
    breaker_closed,
    counted,  // `counts`: at the start, then every 5 s
  };
  Kind kind = Kind::processed;
  std::string_view message;
  const Event* event = nullptr;  // if it is about one; of poison, what could be read
  int attempt = 0;
  std::string reason;                           // for people
  std::chrono::sys_time<Millis> occurred_at{};  // of the event, if its sender said so
  InboxCounts counts{};                         // of `counted`
};

struct ConsumerOptions {
  std::string name;   // of the consumer in the tables: all its replicas use one
  std::string queue;  // where its events come from

  // What is declared at the start: the topology of the whole system, and on top the queue, bound to
  // the topic exchange with these patterns. Without patterns only the topology.
  Topology topology{};
  std::string exchange;
  std::vector<std::string> bind{};

  // Events of one aggregate one after another, in the order in which the relay first published
  // them. The queue is divided into lanes (with_lanes of baton/broker.h): QUEUE.0 to QUEUE.15 with
  // one active consumer each. While an event is in trouble the later ones of its aggregate are HELD
  // in inbox_events; behind a DEAD one until it is redriven or discarded. What is no event at all
  // holds nothing back.
  bool ordered = false;

  std::size_t prefetch = 64;  // deliveries that wait here; of an ordered consumer 8 of each lane
  std::size_t batch = 32;     // events in one transaction

  int max_retries = 5;  // after the first attempt
  std::vector<Millis> retry_delays{Millis{1'000}, Millis{2'000}, Millis{4'000}, Millis{8'000},
                                   Millis{10'000}};  // the last one repeats

  // PostgreSQL: the connection of a handler that takes longer is closed, and the failure recorded;
  // its thread is left alone until it returns. SQLite: the process ends, because such a handler
  // keeps all writers out.
  Millis handler_timeout{30'000};

  // How long ids are remembered, counted from the decision.
  std::chrono::hours deduplication_window{14 * 24};

  // After so many failures of different events in a row one event at a time is tried, every
  // breaker_pause, until one succeeds; 0: never.
  int breaker_after = 10;
  Millis breaker_pause{1'000};
  // Until an event has been in trouble for so long, these tries use no retry of it: what handlers
  // need may be away. From then on they do, so that events which fail for reasons of their own end
  // as DEAD also if no other succeeds meanwhile. 0: they always do.
  Millis breaker_patience{7'200'000};

  // Events of a later version are dead letters; 0: any version.
  std::int32_t max_version = 0;

  OutboxOptions outbox{};  // of Handling::outbox()

  // In the transaction that makes an event DEAD: the place to add a compensating event. If it
  // throws, the event stays RETRY, and the hook is tried again after 10 s, doubled up to 5 min.
  std::function<void(Handling&)> on_give_up = {};

  // After the handlers of a transaction and before its COMMIT, under the same time limit: where
  // effects outside of the database become durable together, as files that are flushed to the disk.
  // An error or an exception is a technical failure of these handlers. May be called again after a
  // rollback.
  std::function<Result<void>()> before_commit = {};

  // Called on threads of the consumer: be quick, do not throw.
  std::function<void(const ConsumerNote&)> on_note = {};

  // How often it looks for due retries when nothing comes.
  Millis poll_interval{200};
  // For tests: added to the clock of the database.
  std::function<Millis()> time_shift = {};
};

// Several consumers and processes may share one name and queue: each event is handled by one of
// them. Thread-safe.
class BATON_EXPORT Consumer {
 public:
  using Handler = std::function<Handled(Handling&)>;

  // The database is sqlite:PATH or postgres://…. Nothing is opened yet.
  Consumer(std::shared_ptr<Broker> broker, std::string database_url, ConsumerOptions options,
           Handler handler);
  ~Consumer();  // stops
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // Consumes until the token fires, then finishes what is in hand. Outages of broker and database
  // are waited for. Errors: `bad_request` (options), `bad_store` (no tables, or those of a newer
  // Baton), and what Broker::declare refuses for good.
  Result<void> run(std::stop_token stop);

  // The same on a thread of its own. An error ends it, and is what stop() gives.
  Result<void> start();
  Result<void> stop();

 private:
  std::unique_ptr<inbox::ConsumerLoop> loop_;
};

}  // namespace baton
