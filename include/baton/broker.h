#pragma once

// A broker takes messages from publishers and keeps them in queues until a consumer has settled
// them. Two implementations with one conformance suite (tests/conformance/broker):
//
//   rabbitmq://USER:PASSWORD@HOST[:5672]/VHOST   quorum queues; rabbitmqs:// with TLS
//   embedded:PATH[?lease=10s]                    an SQLite file, for the processes of one machine
//
// Promised: a message whose confirm says `taken` is in every queue that it was routed to, on disk,
// and is delivered until a consumer acknowledges it. Not promised: that it is delivered once, or in
// order to several consumers of one queue. Retries and dead letters of handlers are not the
// broker's: baton/consumer.h keeps them in the service's database.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/export.h"
#include "baton/result.h"

namespace baton {

inline constexpr std::size_t kMaxMessageBody = 2 << 20;  // bytes

// The exchanges, queues and bindings that all services of a system agree on: each declares all of
// it when it starts, the queues of services that have never run included. Otherwise an event that
// one queue takes is silently missed by a service that starts later.
struct Topology {
  enum class Type : std::uint8_t { topic, headers };

  struct Exchange {
    std::string name;
    Type type = Type::topic;
    std::string alternate;  // an exchange that gets what no binding takes; empty: none
    bool operator==(const Exchange&) const = default;
  };
  struct Queue {
    std::string name;
    bool dead_letters = true;      // with NAME.dlq, for what the broker itself gives up on
    bool single_active = false;    // one consumer at a time, the next when that one goes
    std::uint64_t max_length = 0;  // a full queue refuses to take more; 0: no limit
    bool operator==(const Queue&) const = default;
  };
  struct Binding {
    std::string exchange;
    // Of a topic exchange: words between dots, * is one word, # any number of them. Of a headers
    // exchange: NAME=VALUE of the header that must match.
    std::string pattern;
    std::string queue;  // one of the two
    std::string to_exchange;
    bool operator==(const Binding&) const = default;
  };

  std::vector<Exchange> exchanges;
  std::vector<Queue> queues;
  std::vector<Binding> bindings;
  bool operator==(const Topology&) const = default;
};

// `bad_request`: names that are empty or over 255 bytes, bindings from or to what the topology does
// not have, malformed patterns, one name twice.
[[nodiscard]] BATON_EXPORT Result<void> check_topology(const Topology& topology);

// The lanes into which aggregates are divided by their names: the relay sends the header x-lane,
// from 0 to 15, with every event.
inline constexpr int kLanes = 16;
[[nodiscard]] BATON_EXPORT std::string lane_queue(std::string_view queue, int lane);  // QUEUE.LANE

// For a consumer that keeps the order of aggregates. The queue is replaced by one for each lane,
// with one active consumer at a time, behind the headers exchange QUEUE.lanes, to which its
// bindings go; QUEUE.rest takes what has no lane to lane 0. A topology without the queue stays as
// it is.
[[nodiscard]] BATON_EXPORT Topology with_lanes(Topology topology, const std::string& queue);

// A topology from a file (YAML or JSON, docs/broker.md), checked. `bad_request` with the line.
[[nodiscard]] BATON_EXPORT Result<Topology> parse_topology(std::string_view document);

// Whether a topic pattern takes a routing key. An empty key has no words.
[[nodiscard]] BATON_EXPORT bool topic_matches(std::string_view pattern, std::string_view key);

// Something about a broker that an operator should know. `code` is stable, for scripts.
struct BrokerFinding {
  enum class Severity : std::uint8_t { note, warning, problem };
  Severity severity = Severity::problem;
  std::string code;     // missing-queue, other-arguments, classic-queue, memory-alarm, …
  std::string subject;  // the queue, exchange or binding
  std::string message;  // what it is, and what to do
};

struct QueueInfo {
  std::string name;
  std::uint64_t ready = 0;      // messages that wait for a consumer
  std::uint64_t unsettled = 0;  // delivered, not settled; RabbitMQ does not tell over AMQP: 0
  std::uint64_t consumers = 0;
  bool exists = true;
};

struct Message {
  std::string exchange;
  std::string routing_key;
  std::string id;  // of the event
  std::string body;
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers;
  bool operator==(const Message&) const = default;
};

enum class PublishOutcome : std::uint8_t {
  taken,     // on disk, in at least one queue
  returned,  // no queue wants it, no such exchange, too large: the message's own fault
  refused,   // a queue is full: try again later. Other queues may have taken it
  unknown,   // the connection broke first: it may have been taken
};

struct Confirm {
  std::uint64_t tag = 0;
  PublishOutcome outcome = PublishOutcome::taken;
  std::string why;  // empty if taken
};

struct PublisherState {
  bool connected = false;
  bool blocked = false;  // the broker takes nothing now, as with a memory or disk alarm
  std::string why;       // for people: the last error, or why it is blocked
};

// Not thread-safe: one thread publishes and reads confirms. Reconnects by itself when it is called;
// every message that had no confirm then gets `unknown`.
class BATON_EXPORT Publisher {
 public:
  virtual ~Publisher() = default;

  // Sends without waiting for confirms. Gives the tag of the first message, the others follow by
  // one; tags are never used twice. An error means that none of them was sent, unless `in_doubt`:
  // then those that may have been sent are confirmed as `unknown`. Without messages it only sees to
  // it that the broker is there.
  virtual Result<std::uint64_t> publish(std::span<const Message> messages, Deadline by) = 0;

  // Waits until there is at least one confirm, or until `by`; empty then. Each tag once, in any
  // order. Keeps the connection alive, so call it at least every second while idle.
  virtual Result<std::vector<Confirm>> confirms(Deadline by) = 0;

  [[nodiscard]] virtual PublisherState state() const = 0;
};

struct Delivery {
  std::uint64_t tag = 0;  // of this subscription
  Message message;  // of other programs: a body over kMaxMessageBody is cut off one byte behind it
  std::uint32_t delivery_count = 0;  // how often it was delivered before, as far as is known
};

enum class Settle : std::uint8_t {
  ack,      // done with: the queue forgets it
  requeue,  // deliver it again, to anyone
};

struct Settlement {
  std::uint64_t tag = 0;
  Settle how = Settle::ack;
};

// Not thread-safe. What is neither settled nor alive any more, because its process died, is
// delivered again to another subscription. An error of take or settle ends the subscription: throw
// it away, settle nothing of it, and subscribe again.
class BATON_EXPORT Subscription {
 public:
  virtual ~Subscription() = default;

  // Waits until there is at least one delivery, or until `by`; empty then.
  // Keeps the connection alive, so call it at least every 10 s, with nothing to take too: a broker
  // takes a silent consumer for dead (docs/rabbitmq.md, heartbeat; the embedded one does not).
  virtual Result<std::vector<Delivery>> take(std::size_t most, Deadline by) = 0;
  // Done means sent: should the connection break, what was acknowledged may come again.
  virtual Result<void> settle(std::span<const Settlement> settlements, Deadline by) = 0;
};

struct SubscribeOptions {
  std::size_t prefetch = 64;  // so many deliveries of a queue may be unsettled
};

// Thread-safe.
class BATON_EXPORT Broker {
 public:
  virtual ~Broker() = default;

  // rabbitmq://…, rabbitmqs://… or embedded:PATH. Does not connect yet.
  [[nodiscard]] static Result<std::shared_ptr<Broker>> open(std::string_view url);

  // Makes what is missing. What exists with other arguments is an error that names the queue and
  // the argument, and nothing of it is changed.
  virtual Result<void> declare(const Topology& topology, Deadline by) = 0;
  // What declare() would make or refuse, and what endangers messages; changes nothing.
  virtual Result<std::vector<BrokerFinding>> check(const Topology& topology, Deadline by) = 0;
  virtual Result<std::vector<QueueInfo>> queues(const Topology& topology, Deadline by) = 0;

  virtual Result<std::unique_ptr<Publisher>> publisher() = 0;
  // Of one queue or several, with one connection. Of each queue the deliveries come in its order:
  // first what was delivered before and came back.
  virtual Result<std::unique_ptr<Subscription>> subscribe(std::vector<std::string> queues,
                                                          const SubscribeOptions& options,
                                                          Deadline by) = 0;
  Result<std::unique_ptr<Subscription>> subscribe(std::string_view queue,
                                                  const SubscribeOptions& options, Deadline by) {
    return subscribe(std::vector<std::string>{std::string(queue)}, options, by);
  }

  [[nodiscard]] virtual std::string describe() const = 0;  // its URL without the password
};

}  // namespace baton
