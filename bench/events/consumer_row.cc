// What a consumer with an inbox handles in a second.

#include <stdexcept>

#include <libpq-fe.h>

#include "baton/consumer.h"
#include "baton/event.h"
#include "baton/inbox.h"
#include "events/consumer_floor.h"
#include "events/rows.h"
#include "events/turns.h"
#include "harness/statistics.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr std::int64_t kEnough = 12'000;  // messages in a queue before a turn
constexpr std::size_t kBody = 512;

// Into both queues the same messages.
class Source {
 public:
  explicit Source(Lab& lab) : broker_(Broker::open(lab.rabbitmq().url()).value()) {
    broker_
        ->declare({.exchanges = {{.name = "consume"}},
                   .queues = {{.name = "ours"}, {.name = "floor"}},
                   .bindings = {{.exchange = "consume", .pattern = "#", .queue = "ours"},
                                {.exchange = "consume", .pattern = "#", .queue = "floor"}}},
                  soon())
        .value();
    publisher_ = broker_->publisher().value();
  }

  void add(std::int64_t messages) {
    constexpr std::int64_t kAtOnce = 500;
    for (std::int64_t i = 0; i < messages; i += kAtOnce) {
      std::vector<Message> batch;
      for (std::int64_t one = 0; one < kAtOnce; ++one) batch.push_back(message());
      (void)publisher_->publish(batch, soon()).value();
      for (std::size_t confirmed = 0; confirmed < batch.size();) {
        confirmed += publisher_->confirms(soon()).value().size();
      }
    }
  }

 private:
  // As a relay sends them.
  Message message() {
    ++number_;
    return {.exchange = "consume",
            .routing_key = "order.placed",
            .id = make_event_id(),
            .body = "\"" + std::string(kBody - 2, 'x') + "\"",
            .headers = {{"type", "OrderPlaced"},
                        {"aggregate", "order-" + std::to_string(number_ % 10'000)},
                        {"aggregate-type", "order"},
                        {"version", "1"},
                        {"occurred-at", "2026-01-01T00:00:00.000Z"},
                        {"x-lane", std::to_string(number_ % 16)},
                        {"x-position", std::to_string(number_)}}};
  }

  const std::shared_ptr<Broker> broker_;
  std::unique_ptr<Publisher> publisher_;
  std::int64_t number_ = 0;
};

// One prepared INSERT, as the floor's.
Handled write_effect(Handling& handling) {
  static PGconn* prepared_on = nullptr;  // one consumer, one connection
  PGconn* const database = handling.postgres();
  if (prepared_on != database) {
    PQclear(PQprepare(database, "effect",
                      "INSERT INTO effect (event_id, body) VALUES ($1::uuid, $2)", 0, nullptr));
    prepared_on = database;
  }
  const char* const values[] = {handling.event().id.c_str(), handling.event().payload.c_str()};
  PGresult* const result = PQexecPrepared(database, "effect", 2, values, nullptr, nullptr, 0);
  const bool written = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  return written ? done() : failed(PQerrorMessage(database));
}

}  // namespace

std::vector<Figure> consumer_rate(Lab& lab) {
  const std::string database = lab.new_database("consumer");
  Session admin(database);
  install_inbox(admin.postgres()).value();
  admin.ask(
      "CREATE TABLE effect (event_id uuid PRIMARY KEY, body text NOT NULL);"
      "CREATE TABLE floor_effect (event_id uuid PRIMARY KEY, body text NOT NULL);"
      "CREATE TABLE floor_ledger (consumer text, event_id uuid, outcome text NOT NULL,"
      " processed_at timestamptz NOT NULL DEFAULT clock_timestamp(),"
      " PRIMARY KEY (consumer, event_id))");
  Source source(lab);
  std::int64_t of_ours = 0;
  std::int64_t of_floor = 0;
  const auto fill = [&] {
    const std::int64_t missing = kEnough - std::min(of_ours, of_floor);
    if (missing <= 0) return;
    source.add(missing);
    of_ours += missing;
    of_floor += missing;
  };
  fill();
  const auto turns = std::make_shared<Turns>();
  Consumer consumer(in_turns(Broker::open(lab.rabbitmq().url()).value(), turns, "ours"), database,
                    {.name = "bench", .queue = "ours"}, write_effect);
  ConsumerFloor floor(lab, "floor", database);
  consumer.start().value();
  Slice all_ours;
  Slice all_floor;
  const Pairs pairs = take_turns(lab.options().slices, [&] {
    return interleave(
        lab.options().slice,
        [&](std::chrono::milliseconds time) {
          fill();
          const Slice slice = turns->run(time);
          of_ours -= static_cast<std::int64_t>(slice.steps);
          all_ours += slice;
          return slice;
        },
        [&](std::chrono::milliseconds time) {
          const Slice slice = floor.run(time);
          of_floor -= static_cast<std::int64_t>(slice.steps);
          all_floor += slice;
          return slice;
        });
  });
  turns->end();
  consumer.stop().value();
  return {{.row = "consumer",
           .what = "consumer with inbox, batches of 32, against a raw loop of the same two INSERTs",
           .unit = "messages/s",
           .ours = median(pairs.ours),
           .floor = median(pairs.floor),
           .score = median(ratios(pairs.ours, pairs.floor)),
           .bound = Bound::at_least,
           .target = 1.0,
           .details = {{"client us/message", 1e6 / all_ours.per_cpu_second()},
                       {"floor's client us/message", 1e6 / all_floor.per_cpu_second()}}}};
}

}  // namespace baton::bench
