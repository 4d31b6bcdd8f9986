#pragma once

#include <string_view>

#include "observe/log.h"

namespace baton::observe {

// The lines that the scheduler of the observers writes, each at its level. `lock` is a lock's name,
// as order-observer-poll.
class BATON_EXPORT SchedulerLog {
 public:
  explicit SchedulerLog(Logger out) : out_(std::move(out)) {}

  void cycle_started() const;
  void cycle_completed() const;
  void acquired(std::string_view lock) const;
  void not_acquired(std::string_view lock) const;
  void completed(std::string_view lock) const;
  void released(std::string_view lock) const;
  void interrupted(std::string_view lock) const;
  void poll_failed(std::string_view lock, std::string_view why) const;
  void release_failed(std::string_view lock, std::string_view why) const;

 private:
  Logger out_;
};

}  // namespace baton::observe
