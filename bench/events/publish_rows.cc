// Messages a second to a quorum queue, with 1,000 unconfirmed.

#include <stdexcept>
#include <vector>

#include "baton/broker.h"
#include "events/rabbitmq_floor.h"
#include "events/rows.h"
#include "harness/machine.h"
#include "harness/statistics.h"

namespace baton::bench {
namespace {

constexpr std::size_t kWindow = 1'000;
constexpr std::size_t kBody = 512;

// As a relay does: fills the window, and takes the confirms that are there.
class Ours {
 public:
  Ours(Broker& broker, const std::string& exchange)
      : publisher_(broker.publisher().value()),
        messages_(kWindow, Message{.exchange = exchange,
                                   .routing_key = "bench.publish",
                                   .id = "0190b0a0-0000-7000-8000-000000000000",
                                   .body = std::string(kBody, 'x')}) {}

  Slice run(std::chrono::milliseconds time) {
    const double cpu = process_cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t sent = 0;
    while (std::chrono::steady_clock::now() - start < time) {
      const std::size_t room = kWindow - unconfirmed_;
      (void)publisher_->publish({messages_.data(), room}, soon()).value();
      unconfirmed_ += room;
      sent += room;
      take_confirms();
    }
    while (unconfirmed_ > 0) take_confirms();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    return {.steps = sent, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
  }

 private:
  void take_confirms() {
    const auto confirms = publisher_->confirms(soon()).value();
    for (const Confirm& confirm : confirms) {
      if (confirm.outcome != PublishOutcome::taken) throw std::runtime_error(confirm.why);
    }
    unconfirmed_ -= confirms.size();
  }

  std::unique_ptr<Publisher> publisher_;
  const std::vector<Message> messages_;
  std::size_t unconfirmed_ = 0;
};

}  // namespace

std::vector<Figure> rabbitmq_publish(Lab& lab) {
  const auto broker = Broker::open(lab.rabbitmq().url()).value();
  Topology topology;
  for (const std::string name : {"ours", "floor"}) {
    topology.exchanges.push_back({.name = name});
    topology.queues.push_back({.name = name});
    topology.bindings.push_back({.exchange = name, .pattern = "#", .queue = name});
  }
  broker->declare(topology, soon()).value();
  Ours ours(*broker, "ours");
  RabbitmqFloor floor(lab.rabbitmq().port(), "floor", std::string(kBody, 'x'), kWindow);
  Slice of_ours;
  Slice of_floor;
  const Load ours_turn = [&](std::chrono::milliseconds time) {
    const Slice slice = ours.run(time);
    of_ours += slice;
    floor.purge("ours");
    return slice;
  };
  const Load floor_turn = [&](std::chrono::milliseconds time) {
    const Slice slice = floor.run(time);
    of_floor += slice;
    floor.purge("floor");
    return slice;
  };
  const Pairs pairs = take_turns(
      lab.options().slices, [&] { return interleave(lab.options().slice, ours_turn, floor_turn); });
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs.ours.size(); ++i) {
    ratios.push_back(pairs.ours[i] / pairs.floor[i]);
  }
  const auto micros = [](const Slice& slice) { return 1e6 / slice.per_cpu_second(); };
  return {{.row = "rabbitmq-publish",
           .what = "RabbitMQ, quorum queue, window of 1,000, 512 bytes, against raw librabbitmq",
           .unit = "messages/s",
           .ours = median(pairs.ours),
           .floor = median(pairs.floor),
           .score = median(ratios),
           .bound = Bound::at_least,
           .target = 0.9,
           .details = {{"client us/message", micros(of_ours)},
                       {"floor's client us/message", micros(of_floor)}}}};
}

}  // namespace baton::bench
