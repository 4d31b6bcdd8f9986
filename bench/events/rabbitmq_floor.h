#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/slices.h"

struct amqp_connection_state_t_;
struct amqp_table_entry_t_;

namespace baton::bench {

// Plain librabbitmq: publishes to an exchange, mandatory and persistent, with so many messages
// unconfirmed, and reads the confirms in between. Ends each turn when all are confirmed. With
// headers or without, all messages the same.
class RabbitmqFloor {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  RabbitmqFloor(int port, std::string exchange, std::string body, std::uint64_t window,
                Headers headers = {});
  ~RabbitmqFloor();
  RabbitmqFloor(const RabbitmqFloor&) = delete;
  RabbitmqFloor& operator=(const RabbitmqFloor&) = delete;

  Slice run(std::chrono::milliseconds time);
  double one();  // seconds from sending one message until its confirm
  void purge(const std::string& queue);

 private:
  void publish();
  void read_confirm();

  amqp_connection_state_t_* state_;
  const std::string exchange_;
  const std::string body_;
  const std::uint64_t window_;
  const Headers headers_;
  std::vector<amqp_table_entry_t_> table_;  // of the headers
  std::uint64_t sent_ = 0;
  std::uint64_t confirmed_ = 0;  // all up to this number, as the server confirms here
};

}  // namespace baton::bench
