#pragma once

// Publishes the events of an outbox (baton/outbox.h) to a broker (baton/broker.h).
//
//   baton::Relay relay(locks, "postgres://localhost/shop", broker);
//   relay.run(stop);                                  // or the command `baton relay`
//
//   service ── add, in its transaction ──▶ outbox_events: 16 lanes, divided by aggregate
//                                               ▲
//                                               └── look, mark ── Relay ── publish ──▶ broker
//                                                   (each lane by one replica)
//
//            look             publish            confirmed: taken
//   PENDING ──────▶ in memory ───────▶ unconfirmed ──────────────▶ SENT
//                       ▲                  │
//                       └── not taken yet ─┤ broker away, connection lost: at once, no attempt
//                                          │ queue full: its route backs off, no attempt
//                                          └ unroutable, too large, no such exchange: after
//                                            10, 20, 40 … s, then FAILED; its aggregate waits,
//                                            no other does
//
// Promised: an event is published if and only if its transaction has committed, at least once, and
// the first time in the order in which the transactions of its aggregate became visible. It may be
// published again after a crash, a lost connection or a hand-over: consumers look at its id.
//
// Run as many replicas as you like. The lanes of an outbox are partitions (baton/partitions.h) of
// the set `relay/NAME`, and every write is fenced by the token of the lane: a replica that was
// paused for too long can cause duplicates, and can mark nothing.
//
// Headers of the messages, besides those of the event: type, aggregate, aggregate-type, version,
// correlation-id, causation-id, traceparent, occurred-at (RFC 3339, UTC), x-lane, x-position. The
// id of the message is that of the event.
//
// Database, broker or lock store away: nothing is marked and no attempt is used. It goes on when
// they are back, without being told.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "baton/broker.h"
#include "baton/clock.h"
#include "baton/export.h"
#include "baton/locks.h"
#include "baton/result.h"

namespace baton {

// Replicas of one outbox have one mode. In different ones they lose nothing, because both hold the
// locks of the lanes, but a leader does not have them all: both tell on_error.
enum class RelayMode : std::uint8_t {
  partitioned,  // the lanes are divided among the replicas
  leader,       // one replica has them all; the election `relay/NAME`
};

// What becomes of an aggregate when an event of it has FAILED.
enum class RelayOnFailed : std::uint8_t {
  hold,  // its later events wait until somebody retries or discards that one (`baton outbox`)
  skip,  // they are published without it
};

struct RelayEvent {
  enum class Kind : std::uint8_t {
    published,  // taken by the broker; `took` since it was added
    returned,   // not its route's and not the broker's fault: it is tried again, or has FAILED
    failed,     // its last attempt was returned
    refused,    // a queue is full or does not answer
    lane_taken,
    lane_left,
    swept,      // events that nobody knew of: something else has written to the table
    cleaned,    // events that were published long enough ago have been removed
    recovered,  // what on_error told is over
  };
  Kind kind = Kind::published;
  int lane = 0;
  // Of the first four kinds:
  std::string event_id;
  std::string type;
  std::string aggregate;
  std::string routing_key;
  std::string correlation_id;
  std::string why;
  int attempts = 0;
  Millis took{0};
  std::int64_t count = 1;  // of `swept` and `cleaned`
};

struct RelayOptions {
  // Which outbox it is: replicas that share a name share its lanes. By default it is made from the
  // database, so that two outboxes never share lanes: of PostgreSQL from cluster, database and
  // table, of SQLite from the path of the file. Give one if replicas see the file by different
  // paths, or to have a name that people can read.
  std::string name;
  RelayMode mode = RelayMode::partitioned;
  Millis ttl{10'000};  // if a replica dies, its lanes are read by others after this long

  std::size_t window_messages = 1'000;  // unconfirmed at a time
  std::size_t window_bytes = 1 << 20;
  int max_attempts = 10;
  Millis first_delay{10'000};  // doubles with every attempt, ± 20%
  RelayOnFailed on_failed = RelayOnFailed::hold;

  // What is not confirmed by then counts as refused: the events of its routing key wait, the others
  // go on. So a queue that has lost the majority of its nodes stops nobody else.
  Millis confirm_within{5'000};

  // Declared before anything is published, again after each loss of the broker.
  std::optional<Topology> topology;

  Millis statement_timeout{10'000};
  Millis drain{5'000};  // at a stop or hand-over, so long it waits for confirms; at most half a TTL
  Millis sweep_every{600'000};  // and so old are the events that a sweep looks for

  // So long published and discarded events stay, since they were added: 1 hour to 6 days, 0 for
  // ever. The replica that owns lane 0 removes older ones, soon after it has got it and then every
  // `clean_every`. PostgreSQL: needs SELECT and TRUNCATE on the slots (docs/events.md); without
  // these rights it says so once, and goes on.
  Millis keep{std::chrono::hours(72)};
  Millis clean_every{3'600'000};
  std::string region = std::string(kDefaultRegion);
  Metadata metadata;  // shown with this replica

  // Called on threads of this class: be quick, do not throw, do not call stop(). An error is told
  // once, and again when it has changed; on_event tells when it is over.
  std::function<void(const Error&)> on_error = {};
  std::function<void(const RelayEvent&)> on_event = {};
};

// As of a moment ago.
struct RelayStats {
  std::string set;  // of the partitions: relay/NAME; empty until the database has told the name
  bool database_connected = false;
  bool broker_connected = false;
  bool broker_blocked = false;  // connected, and takes nothing: a memory or disk alarm
  std::string trouble;          // what is wrong now; empty if nothing is
  std::size_t lanes_owned = 0;
  std::size_t unconfirmed = 0;

  std::uint64_t published = 0;
  std::uint64_t retries = 0;  // returned events that will be tried again
  std::uint64_t failed = 0;
  std::uint64_t refused = 0;
  std::uint64_t swept = 0;  // stays 0

  // Of the lanes owned, looked up every 10 s and counted up to 10,000.
  std::int64_t waiting_pending = 0;
  std::int64_t waiting_held = 0;
  std::int64_t waiting_failed = 0;
  Millis oldest{0};
};

namespace relay {
class Runner;
}

class BATON_EXPORT Relay {
 public:
  // `outbox_url` is postgres://… or sqlite:PATH, with the tables of the outbox. Does not connect.
  Relay(LockClient locks, std::string outbox_url, std::shared_ptr<Broker> broker,
        RelayOptions options = {});
  // Stops; waits not much longer than `drain` and the calls that are under way.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Relays until it is stopped, by `stop` or by stop(). An error means that it cannot work as it
  // is: a bad URL or name, a TTL that the store refuses, a policy that denies it. Neither a
  // database without tables nor a broker that refuses our credentials ends it: an operator may
  // mend that, and on_error tells it.
  Result<void> run(const std::stop_token& stop = {});

  // The same on a thread of its own. What ends it early is told to on_error.
  Result<void> start();

  // For good; idempotent. Publishes nothing more, waits for confirms and marks what was confirmed,
  // for `drain` at most, and gives up the lanes. Not from a callback.
  void stop();

  [[nodiscard]] RelayStats stats() const;

 private:
  std::shared_ptr<relay::Runner> runner_;
  std::thread thread_;
};

}  // namespace baton
