// What a relay publishes in a second from an outbox in PostgreSQL to a quorum queue of RabbitMQ.

#include <memory>
#include <stdexcept>
#include <string>

#include "baton/locks.h"
#include "baton/outbox.h"
#include "baton/relay.h"
#include "events/backlog.h"
#include "events/rabbitmq_floor.h"
#include "events/rows.h"
#include "events/turns.h"
#include "harness/machine.h"
#include "harness/statistics.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr std::size_t kWindow = 1'000;
constexpr std::size_t kBody = 512;
constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kFew = 10'000;

std::string new_outbox(Lab& lab, const std::string& name) {
  std::string url = lab.new_database(name);
  Session session(url);
  install_outbox(session.postgres()).value();
  return url;
}

// A relay with a queue of its own, which always finds at least so many events in its outbox.
class RelayInTurns {
 public:
  RelayInTurns(Lab& lab, const std::string& name, std::string database, std::int64_t at_least,
               std::int64_t waiting)
      : name_(name),
        database_(std::move(database)),
        at_least_(at_least),
        waiting_(waiting),
        broker_(Broker::open(lab.rabbitmq().url()).value()),
        turns_(std::make_shared<Turns>()),
        purger_(lab.rabbitmq().port(), name, "", 1),
        relay_(open("memory:").value(), database_, in_turns(broker_, turns_), {.name = name}) {
    lab.declare(*broker_, name);
    fill();
    relay_.start().value();
    turns_->wait_until_ready();
  }
  ~RelayInTurns() { turns_->end(); }
  RelayInTurns(const RelayInTurns&) = delete;
  RelayInTurns& operator=(const RelayInTurns&) = delete;

  Slice run(std::chrono::milliseconds time) {
    fill();
    const Slice slice = turns_->run(time);
    waiting_ -= static_cast<std::int64_t>(slice.steps);
    all_ += slice;
    purger_.purge(name_);
    return slice;
  }
  [[nodiscard]] Load load() {
    return [this](std::chrono::milliseconds time) { return run(time); };
  }
  [[nodiscard]] const Slice& all() const { return all_; }

 private:
  void fill() {
    if (waiting_ >= at_least_) return;
    const std::int64_t more = at_least_ - waiting_ + at_least_ / 10;
    add_backlog(database_, name_, more);
    waiting_ += more;
  }

  const std::string name_;
  const std::string database_;
  const std::int64_t at_least_;
  std::int64_t waiting_;
  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Turns> turns_;
  RabbitmqFloor purger_;
  Slice all_;
  Relay relay_;
};

}  // namespace

std::vector<Figure> relay_rate(Lab& lab) {
  RelayInTurns relay(lab, "relay", new_outbox(lab, "relay"), 40'000, 0);
  const auto broker = Broker::open(lab.rabbitmq().url()).value();
  lab.declare(*broker, "relay-floor");
  RabbitmqFloor floor(lab.rabbitmq().port(), "relay-floor", std::string(kBody, 'x'), kWindow);
  Slice of_floor;
  const std::string servers = Session(lab.postgres().socket_url("relay"))
                                  .ask(
                                      "SELECT string_agg(pid::text, ',') FROM pg_stat_activity"
                                      " WHERE application_name = 'baton relay'");
  double server_cpu = 0;
  const Load floor_turn = [&](std::chrono::milliseconds time) {
    const Slice slice = floor.run(time);
    of_floor += slice;
    floor.purge("relay-floor");
    return slice;
  };
  const Load relay_turn = [&](std::chrono::milliseconds time) {
    const double before = cpu_seconds_of(servers);
    const Slice slice = relay.run(time);
    server_cpu += cpu_seconds_of(servers) - before;
    return slice;
  };
  const Pairs pairs = take_turns(lab.options().slices, [&] {
    return interleave(lab.options().slice, relay_turn, floor_turn);
  });
  return {{.row = "relay",
           .what = "relay to a quorum queue, 512 bytes, against raw librabbitmq, window of 1,000",
           .unit = "messages/s",
           .ours = median(pairs.ours),
           .floor = median(pairs.floor),
           .score = median(ratios(pairs.ours, pairs.floor)),
           .bound = Bound::at_least,
           .target = 0.8,
           .details = {{"relay us/message", 1e6 / relay.all().per_cpu_second()},
                       {"its sessions us/message",
                        server_cpu / static_cast<double>(relay.all().steps) * 1e6},
                       {"floor us/message", 1e6 / of_floor.per_cpu_second()}}}};
}

}  // namespace baton::bench
