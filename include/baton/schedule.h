#pragma once

// When a job runs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "baton/clock.h"
#include "baton/node.h"
#include "baton/result.h"

namespace baton {

// A value: cheap to copy, never changes.
class BATON_EXPORT Schedule {
 public:
  enum class Kind : std::uint8_t { fixed_delay, fixed_rate, cron };

  // `delay` after the end of the previous run, on whichever node. The first run is at once.
  static Result<Schedule> fixed_delay(Millis delay);

  // At multiples of `period`, shifted by `phase`. Without one, the name of the job decides it, so
  // that jobs of one period do not all run at the same moment.
  static Result<Schedule> fixed_rate(Millis period, std::optional<Millis> phase = std::nullopt);

  // Five fields (minute hour day month weekday) or @hourly, @daily, @weekly, @monthly, @yearly, by
  // the clocks on the wall of `time_zone` (a name of the IANA database). Where clocks are put
  // forward, a time that does not exist runs at the moment of the change; where they are put back,
  // a time that comes twice runs the first time, unless the hour is `*`. See docs/scheduler.md.
  static Result<Schedule> cron(std::string_view expression, std::string_view time_zone = "UTC");

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] Millis interval() const;  // delay or period; of cron, zero

  // The first nominal time after `after`. Fixed delay: `after` is the end of the last run.
  [[nodiscard]] WallTime next(WallTime after, std::string_view job) const;

  // The last nominal time in (after, until]; `after` if there is none.
  [[nodiscard]] WallTime latest(WallTime after, WallTime until, std::string_view job) const;

  [[nodiscard]] std::string text() const;  // "every 30s", "30s after the end", "0 2 * * * UTC"

 private:
  struct Rule;
  explicit Schedule(std::shared_ptr<const Rule> rule);
  std::shared_ptr<const Rule> rule_;
};

}  // namespace baton
