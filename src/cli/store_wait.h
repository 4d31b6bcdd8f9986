#pragma once

#include <optional>

#include "baton/clock.h"
#include "cli/commands.h"

namespace baton::cli {

// The patience of a command whose store is down: pauses between tries to open it, and says from
// time to time what it waits for.
class StoreWait {
 public:
  // Gives up at `until`; never, if there is none.
  StoreWait(const Output& out, std::optional<Instant> until);

  // After a try that failed: true, after a pause, if it is worth another one. Only a store that is
  // unavailable is; a wrong URL, password or schema does not mend itself.
  bool operator()(const Error& error);

 private:
  const Output& out_;
  std::optional<Instant> until_;
  Millis pause_;
  Instant tell_at_{};
};

}  // namespace baton::cli
