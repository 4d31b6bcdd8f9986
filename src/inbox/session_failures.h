#pragma once

// Whether a handler is why its session with the database fails: an outage looks the same, but does
// not come again whenever this handler runs. Pure.

#include <utility>

namespace baton::inbox {

class SessionFailures {
 public:
  // `refusals`: how many sessions could not be opened so far.
  explicit SessionFailures(int refusals) : refusals_(refusals) {}

  // The session has failed once more, in or behind the handler. True from the third time in a row
  // on; a time with a refusal before it counts for a third, since the server may have gone by
  // itself.
  bool failed_again(int refusals) {
    points_ += std::exchange(refusals_, refusals) == refusals ? 3 : 1;
    return points_ >= 9;
  }

 private:
  int refusals_;
  int points_ = 0;
};

}  // namespace baton::inbox
