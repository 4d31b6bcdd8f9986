#pragma once

#include <functional>
#include <stop_token>

#include "apps/warehouse/observer_store.h"
#include "apps/warehouse/source.h"

namespace baton::warehouse {

struct PollLimits {
  std::size_t batch = 500;   // rows of one transaction
  std::size_t batches = 20;  // of one observer in one poll; what is left is the next poll's
};

// Polls one observer: reads what the source has behind its state, publishes it and keeps the new
// state. A pass goes over all rows from complete_below on; when it has come to their end, every row
// below the horizon that was taken before its beginning has been seen, so complete_below becomes
// that. A pass goes on over several polls if the limits say so, whichever nodes do them.
class ObserverPoll {
 public:
  ObserverPoll(ObserverStore& store, const Poll& poll, const PollLimits& limits)
      : store_(store), poll_(poll), limits_(limits) {}

  // Between reading rows and writing them; for those who want to see it slow.
  std::function<void()> before_write;

  // Ends early, and well, when `stop` fires. `figures` grows also if it fails.
  Result<void> run(Observer observer, Source& source, const std::stop_token& stop,
                   PollFigures& figures);

 private:
  Result<bool> page(Observer& observer, Source& source, PollFigures& figures);

  ObserverStore& store_;
  const Poll& poll_;
  const PollLimits& limits_;
};

}  // namespace baton::warehouse
