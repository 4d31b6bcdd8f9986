#pragma once

// Opening what a command asks: for 5 s at most, and a terminal is told what is waited for.

#include <memory>
#include <string>
#include <thread>

#include "baton/locks.h"
#include "baton/store.h"
#include "baton/store_admin.h"
#include "cli/commands.h"
#include "cli/open_timeout.h"
#include "cli/settings.h"

namespace baton::cli {

[[nodiscard]] Result<LockClient> open_locks(const Context& context, const Settings& settings,
                                            Millis within = open_timeout());
[[nodiscard]] Result<std::shared_ptr<LockStore>> open_locks_store(const Context& context,
                                                                  const Settings& settings,
                                                                  Millis within = open_timeout());
[[nodiscard]] Result<std::unique_ptr<StoreAdmin>> open_locks_admin(const Context& context,
                                                                   const Settings& settings);

// Tells a terminal what is waited for, once that has taken a second: a server that stands still
// gives no sign. Give it the URL, of which no password is shown.
class OpenProgress {
 public:
  OpenProgress(Output& out, const std::string& url, Millis most);
  ~OpenProgress();
  OpenProgress(const OpenProgress&) = delete;
  OpenProgress& operator=(const OpenProgress&) = delete;

 private:
  Output& out_;
  std::jthread thread_;
};

}  // namespace baton::cli
