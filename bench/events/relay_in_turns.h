#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "baton/relay.h"
#include "events/lab.h"
#include "events/rabbitmq_floor.h"
#include "events/turns.h"

namespace baton::bench {

// A relay with a queue of its own, to which others take turns.
class RelayInTurns {
 public:
  struct Outbox {
    std::string database;
    std::int64_t waiting = 0;   // events in it
    std::int64_t at_least = 0;  // before a turn it is filled up to so many
  };
  // Returns when it has its first events in memory.
  RelayInTurns(Lab& lab, const std::string& name, Outbox outbox);
  ~RelayInTurns() { turns_->end(); }
  RelayInTurns(const RelayInTurns&) = delete;
  RelayInTurns& operator=(const RelayInTurns&) = delete;

  [[nodiscard]] Slice run(std::chrono::milliseconds time);
  [[nodiscard]] const Slice& all() const { return all_; }      // of its turns
  [[nodiscard]] double first_after() const { return first_; }  // seconds from start to first event

  // Of its turns, microseconds of processor time a message: this process, sessions, RabbitMQ.
  struct Cost {
    double relay = 0;
    double sessions = 0;
    double rabbitmq = 0;
  };
  [[nodiscard]] Cost cost() const;

 private:
  void fill();

  const std::string name_;
  Outbox outbox_;
  const pid_t rabbitmq_;
  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Turns> turns_;
  RabbitmqFloor purger_;
  std::string sessions_;  // their processes
  Slice all_;
  Cost spent_;  // seconds
  double first_ = 0;
  Relay relay_;
};

}  // namespace baton::bench
