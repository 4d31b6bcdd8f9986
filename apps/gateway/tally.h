#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "baton/result.h"

namespace baton::gateway {

// Counts things by name where each write takes a while: what comes while one is under way is
// written together with the next. Thread-safe.
class Tally {
 public:
  using Count = Result<std::optional<std::int64_t>>;
  // Adds so many and says how many there are then; nothing if it cannot be counted any more.
  using Write = std::function<Count(std::int64_t more)>;

  // One more of that name. Says how many there were with this one.
  [[nodiscard]] Count add(const std::string& name, const Write& write);

  // How many wait for the next write of that name.
  [[nodiscard]] std::int64_t gathered(const std::string& name);

 private:
  struct Round {
    std::int64_t size = 0;
    bool ended = false;
    Count outcome = std::optional<std::int64_t>();
  };
  struct Name {
    bool writing = false;
    std::shared_ptr<Round> next;  // gathers until the write before it has ended
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Name> names_;
};

}  // namespace baton::gateway
