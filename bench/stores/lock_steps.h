#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "baton/locks.h"

namespace baton::bench {

// Takes a name that nobody has taken before, and lets go of it.
class FreshNames {
 public:
  explicit FreshNames(const std::string& url) : locks_(open(url).value()) {}
  double acquire();  // milliseconds until it is held

 private:
  LockClient locks_;
  int name_ = 0;
};

// One client holds, another one waits.
class Relay {
 public:
  explicit Relay(const std::string& url)
      : first_(open(url, {.owner = "first"}).value()),
        second_(open(url, {.owner = "second"}).value()) {}
  double hand_over();  // milliseconds from the release until the other one has it

 private:
  LockClient first_;
  LockClient second_;
  std::mutex mutex_;
  std::condition_variable signal_;
  std::optional<Result<Lease>> lease_;
  double granted_at_ = 0;
};

}  // namespace baton::bench
