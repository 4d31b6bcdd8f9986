// How long the event of a lone writer takes, from its commit until the broker has it.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "baton/locks.h"
#include "baton/outbox.h"
#include "baton/relay.h"
#include "events/rabbitmq_floor.h"
#include "events/rows.h"
#include "harness/statistics.h"
#include "locks/session.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

// When the last event was confirmed.
class Confirmed {
 public:
  void now() {
    const std::lock_guard lock(mutex_);
    at_ = BootClock::now();
    changed_.notify_all();
  }
  Instant wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return at_.has_value(); })) {
      throw std::runtime_error("the relay has not published an event");
    }
    return *std::exchange(at_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Instant> at_;
};

class IdleRelay {
 public:
  explicit IdleRelay(Lab& lab)
      : database_(lab.new_database("idle")),
        writer_(database_),
        looker_(database_),
        broker_(Broker::open(lab.rabbitmq().url()).value()),
        relay_(open("memory:").value(), database_, broker_,
               {.on_event = [this](const RelayEvent& event) {
                 if (event.kind == RelayEvent::Kind::published) confirmed_.now();
               }}) {
    install_outbox(writer_.postgres()).value();
    lab.declare(*broker_, "idle");
    relay_.start().value();
  }

  // Milliseconds.
  double one() {
    wait_until_it_sleeps();
    writer_.ask("BEGIN");
    outbox_
        .add(writer_.postgres(),
             {.type = "OrderPlaced", .aggregate = "order-7", .payload = payload_})
        .value();
    writer_.ask("COMMIT");
    const Instant committed = BootClock::now();
    return std::chrono::duration<double, std::milli>(confirmed_.wait() - committed).count();
  }

 private:
  // It then has the locks of all lanes.
  void wait_until_it_sleeps() {
    const bool sleeps = test::poll_until([&] {
      return looker_.number(
                 "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode ="
                 " 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE"
                 " datname = current_database())") >= kOutboxLanes;
    });
    if (!sleeps) throw std::runtime_error("the relay does not go to sleep");
  }

  const std::string database_;
  Session writer_;
  Session looker_;
  const std::shared_ptr<Broker> broker_;
  const Outbox outbox_{{.exchange = "idle"}};
  const std::string payload_ = "\"" + std::string(510, 'x') + "\"";
  Confirmed confirmed_;
  Relay relay_;
};

}  // namespace

std::vector<Figure> relay_idle(Lab& lab) {
  IdleRelay relay(lab);
  lab.declare(*Broker::open(lab.rabbitmq().url()).value(), "idle-floor");
  RabbitmqFloor floor(lab.rabbitmq().port(), "idle-floor", std::string(512, 'x'), 1);
  std::vector<double> ours;
  std::vector<double> raw;
  const int samples = lab.options().slices * 60;
  for (int i = -10; i < samples; ++i) {
    const double one = relay.one();
    const double other = floor.one() * 1e3;
    if (i < 0) continue;  // connections, caches
    ours.push_back(one);
    raw.push_back(other);
  }
  Figure figure{.row = "relay-idle",
                .what = "from commit to confirm while idle, median, against publish and confirm",
                .unit = "ms",
                .ours = median(ours),
                .floor = median(raw),
                .bound = Bound::at_most,
                .target = 4};
  figure.score = figure.ours / *figure.floor;
  Figure absolute{.row = "relay-idle",
                  .what = "the same without comparison",
                  .unit = "ms",
                  .ours = figure.ours,
                  .score = figure.ours,
                  .bound = Bound::at_most,
                  .target = 10,
                  .details = {{"95%", percentile(ours, 0.95)},
                              {"floor's 95%", percentile(raw, 0.95)},
                              {"samples", static_cast<double>(samples)}}};
  return {std::move(figure), std::move(absolute)};
}

}  // namespace baton::bench
