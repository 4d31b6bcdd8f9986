#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "baton/locks.h"
#include "cli/output.h"
#include "cli/settings.h"

namespace baton::cli {

// A client of the store, for a command that runs for long.
struct CountedLocks {
  std::shared_ptr<void> server;  // of its metrics, if they were asked for
  LockClient locks;
};

// `metrics` is what --metrics says: IP:PORT, on which the client's metrics are served at /metrics
// as long as the server is kept. Empty: none. Who asks for any free port is told which.
//
// A store that cannot be opened is tried again for as long as `again` says so. With `until`, a try
// that takes past it is given up.
using TryAgain = std::function<bool(const Error& error)>;
[[nodiscard]] Result<CountedLocks> open_counted(const Settings& settings,
                                                const std::string& metrics, const Output& out,
                                                const TryAgain& again,
                                                std::optional<Instant> until = {});

}  // namespace baton::cli
