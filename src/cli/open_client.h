#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "baton/locks.h"
#include "cli/output.h"
#include "cli/settings.h"

namespace baton::observe {
class Metrics;
}  // namespace baton::observe

namespace baton::cli {

// A client of the store, for a command that runs for long.
struct OpenedClient {
  std::shared_ptr<void> server;  // of its metrics, if they were asked for
  LockClient locks;
  std::shared_ptr<observe::Metrics> metrics;  // that it serves, if they were asked for
};

// `metrics` is what --metrics says: IP:PORT, on which the client's metrics are served at /metrics
// as long as the server is kept. Empty: none. With port 0, the port that was taken is printed. With
// `leads`, /leader answers 200 or 503.
//
// A store that cannot be opened is tried again for as long as `again` says so. With `until`, a try
// that takes past it is given up.
using TryAgain = std::function<bool(const Error& error)>;
[[nodiscard]] Result<OpenedClient> open_client(const Settings& settings, const std::string& metrics,
                                               const Output& out, const TryAgain& again,
                                               std::optional<Instant> until = {},
                                               std::function<bool()> leads = {});

}  // namespace baton::cli
