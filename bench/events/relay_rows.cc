// What a relay publishes in a second from an outbox in PostgreSQL to a quorum queue of RabbitMQ.

#include <memory>
#include <string>

#include "baton/outbox.h"
#include "events/backlog.h"
#include "events/rabbitmq_floor.h"
#include "events/relay_in_turns.h"
#include "events/rows.h"
#include "harness/machine.h"
#include "harness/statistics.h"
#include "locks/session.h"
#include "support/process.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

constexpr std::size_t kWindow = 1'000;
constexpr std::size_t kBody = 512;
constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kFew = 10'000;
constexpr std::int64_t kEnough = 40'000;  // for a turn, and what is in memory meanwhile

// Of the events of the backlog, so that RabbitMQ has the same to do for both.
const RabbitmqFloor::Headers kHeaders{{"aggregate", "order-1234"},
                                      {"aggregate-type", "order"},
                                      {"occurred-at", "2026-11-18T20:14:03.271Z"},
                                      {"type", "OrderPlaced"},
                                      {"version", "1"},
                                      {"x-lane", "7"},
                                      {"x-position", "123456"}};

std::string new_outbox(Lab& lab, const std::string& name) {
  std::string url = lab.new_database(name);
  Session session(url);
  install_outbox(session.postgres()).value();
  return url;
}

// Of two relays, in turns.
Figure compare_relays(const Lab& lab, RelayInTurns& ours, RelayInTurns& other) {
  const Pairs pairs = take_turns(lab.options().slices, [&] {
    return interleave(
        lab.options().slice, [&](std::chrono::milliseconds time) { return ours.run(time); },
        [&](std::chrono::milliseconds time) { return other.run(time); });
  });
  return {.unit = "messages/s",
          .ours = median(pairs.ours),
          .floor = median(pairs.floor),
          .score = median(ratios(pairs.ours, pairs.floor)),
          .bound = Bound::at_least,
          .details = {{"relay us/message", ours.cost().relay},
                      {"the other relay us/message", other.cost().relay},
                      {"sessions us/message", ours.cost().sessions},
                      {"the other's sessions us/message", other.cost().sessions},
                      {"first message after, s", ours.first_after()}}};
}

// The command, as a service runs it, on what is left of a backlog.
Figure memory_of_relay(Lab& lab, const std::string& database, const std::string& queue) {
  const auto broker = Broker::open(lab.rabbitmq().url()).value();
  test::Process relay(
      {.argv = {BATON_BENCH_BATON, "relay", "--outbox", database, "--broker", lab.rabbitmq().url(),
                "--store", "sqlite:" + (lab.directory().path() / "locks.db").string(), "--name",
                queue}});
  const auto published = [&] {
    return broker->queues({.queues = {{.name = queue}}}, soon()).value().front().ready;
  };
  constexpr std::uint64_t kSeveralWindows = 20'000;
  if (!test::poll_until([&] { return published() >= kSeveralWindows; }, std::chrono::seconds(60),
                        std::chrono::milliseconds(100))) {
    throw std::runtime_error("the relay does not publish: " + relay.out() + relay.err());
  }
  Figure figure{.row = "relay-backlog",
                .what = "most resident memory of a relay with such a backlog",
                .unit = "MB",
                .ours = most_resident_megabytes(relay.pid()),
                .bound = Bound::at_most,
                .target = 100};
  figure.score = figure.ours;
  return figure;
}

}  // namespace

std::vector<Figure> relay_rate(Lab& lab) {
  RelayInTurns relay(lab, "relay", {.database = new_outbox(lab, "relay"), .at_least = kEnough});
  lab.declare(*Broker::open(lab.rabbitmq().url()).value(), "relay-floor");
  RabbitmqFloor floor(lab.rabbitmq().port(), "relay-floor", std::string(kBody, 'x'), kWindow,
                      kHeaders);
  const pid_t rabbitmq = lab.rabbitmq().pid();
  double floor_rabbitmq = 0;
  Slice of_floor;
  const Load floor_turn = [&](std::chrono::milliseconds time) {
    const double before = cpu_seconds_of_process(rabbitmq);
    const Slice slice = floor.run(time);
    floor_rabbitmq += cpu_seconds_of_process(rabbitmq) - before;
    of_floor += slice;
    floor.purge("relay-floor");
    return slice;
  };
  const Pairs pairs = take_turns(lab.options().slices, [&] {
    return interleave(
        lab.options().slice, [&](std::chrono::milliseconds time) { return relay.run(time); },
        floor_turn);
  });
  const RelayInTurns::Cost cost = relay.cost();
  const double floor_client = 1e6 / of_floor.per_cpu_second();
  const double floor_server = floor_rabbitmq / static_cast<double>(of_floor.steps) * 1e6;
  Figure processor{.row = "relay",
                   .what = "processor time of relay, its sessions and RabbitMQ",
                   .unit = "us/message",
                   .ours = cost.relay + cost.sessions + cost.rabbitmq,
                   .floor = floor_client + floor_server,
                   .details = {{"relay", cost.relay},
                               {"its sessions", cost.sessions},
                               {"RabbitMQ", cost.rabbitmq},
                               {"floor", floor_client},
                               {"RabbitMQ, of the floor", floor_server}}};
  processor.score = processor.ours / *processor.floor;
  return {{.row = "relay",
           .what = "relay to a quorum queue, 512 bytes, against raw librabbitmq, window of 1,000",
           .unit = "messages/s",
           .ours = median(pairs.ours),
           .floor = median(pairs.floor),
           .score = median(ratios(pairs.ours, pairs.floor)),
           .bound = Bound::at_least,
           .target = 0.8},
          std::move(processor)};
}

std::vector<Figure> relay_backlog(Lab& lab) {
  const std::string million = new_outbox(lab, "backlog_million");
  say("writing a million events");
  add_backlog(million, "backlog-million", kMillion);
  Session(million).ask("VACUUM ANALYZE outbox_events");
  Session(million).ask("CHECKPOINT");
  std::vector<Figure> figures;
  {
    RelayInTurns many(lab, "backlog-million", {.database = million, .waiting = kMillion});
    RelayInTurns few(lab, "backlog-few",
                     {.database = new_outbox(lab, "backlog_few"), .at_least = kFew});
    Figure figure = compare_relays(lab, many, few);
    figure.row = "relay-backlog";
    figure.what = "relay over a backlog of 1,000,000 events, against 10,000";
    figure.target = 0.9;
    figures.push_back(std::move(figure));
  }
  figures.push_back(memory_of_relay(lab, million, "backlog-million"));
  return figures;
}

std::vector<Figure> relay_pinned(Lab& lab) {
  const std::string pinned = new_outbox(lab, "pinned");
  Session holder(pinned);
  holder.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()");
  RelayInTurns ours(lab, "pinned", {.database = pinned, .at_least = kEnough});
  RelayInTurns other(lab, "unpinned",
                     {.database = new_outbox(lab, "unpinned"), .at_least = kEnough});
  Figure figure = compare_relays(lab, ours, other);
  figure.row = "relay-pinned";
  figure.what = "relay beside a transaction that stays open, against without one";
  figure.target = 0.85;
  return {std::move(figure)};
}

}  // namespace baton::bench
