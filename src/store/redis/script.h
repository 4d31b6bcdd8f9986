#pragma once

#include <mutex>
#include <string>

#include "store/redis/connection.h"

namespace baton::store::redis {

// The script that answers batches, as text: the long way is a function that the short way calls.
[[nodiscard]] const std::string& apply_script();

// What the server calls it. Thread-safe.
class ScriptName {
 public:
  // Loads the script into the server of this connection, which has none or has forgotten it.
  Result<void> load(Connection& connection, const Settings& settings, Deadline deadline);
  [[nodiscard]] std::string get() const {
    const std::lock_guard lock(mutex_);
    return sha_;
  }

 private:
  mutable std::mutex mutex_;
  std::string sha_;
};

}  // namespace baton::store::redis
