#pragma once

// When so many different events have failed in a row that the fault must be elsewhere, one at a
// time is tried: a due retry, a fresh delivery, and so on, until one succeeds. Pure. What a probe
// costs its event is up to gives_back() of decision.h, which ends what cannot succeed.

#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace baton::inbox {

class Breaker {
 public:
  enum class Probe : bool { retry, delivery };

  // 0: never opens.
  explicit Breaker(int after) : after_(static_cast<std::size_t>(after)) {}

  [[nodiscard]] bool open() const { return open_; }

  // True if it opens with this.
  bool failed(const std::string& event_id) {
    if (open_ || after_ == 0) return false;
    failed_.insert(event_id);
    open_ = failed_.size() >= after_;
    return open_;
  }

  // True if it closes with this.
  bool succeeded() {
    failed_.clear();
    next_ = Probe::retry;
    return std::exchange(open_, false);
  }

  // What is to be tried next; each call alternates.
  Probe next_probe() {
    return std::exchange(next_, next_ == Probe::retry ? Probe::delivery : Probe::retry);
  }

 private:
  const std::size_t after_;
  std::set<std::string> failed_;
  bool open_ = false;
  Probe next_ = Probe::retry;
};

}  // namespace baton::inbox
