#pragma once

#include <memory>
#include <string>

#include "events/lab.h"

namespace baton::bench {

// The least that a consumer without an inbox does: plain librabbitmq with 64 unsettled deliveries,
// and libpq. 32 deliveries a transaction, of each two prepared INSERTs: its id into a ledger, and
// an effect. Acknowledged, all at once, when it is committed.
class ConsumerFloor {
 public:
  ConsumerFloor(Lab& lab, const std::string& queue, const std::string& database);
  ~ConsumerFloor();
  ConsumerFloor(const ConsumerFloor&) = delete;
  ConsumerFloor& operator=(const ConsumerFloor&) = delete;

  Slice run(std::chrono::milliseconds time);

 private:
  struct State;
  void consume_batch();

  const std::unique_ptr<State> state_;
};

}  // namespace baton::bench
