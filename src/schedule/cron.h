#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schedule/time_zone.h"

namespace baton::schedule {

// minute hour day-of-month month day-of-week, as crontab(5) has them: *, lists, ranges, steps,
// names of months and weekdays, 0 and 7 for Sunday. If both days are restricted, either will do.
class Cron {
 public:
  // Refuses an expression that no date ever matches.
  static Result<Cron> parse(std::string_view expression, std::shared_ptr<const TimeZone> zone);

  // The first time after `after`.
  [[nodiscard]] UtcSeconds next(UtcSeconds after) const;

  [[nodiscard]] const std::string& expression() const { return expression_; }
  [[nodiscard]] const TimeZone& zone() const { return *zone_; }

 private:
  [[nodiscard]] bool matches(std::chrono::local_days day) const;
  [[nodiscard]] std::optional<UtcSeconds> first_of(std::chrono::local_days day,
                                                   UtcSeconds after) const;
  [[nodiscard]] std::optional<UtcSeconds> find(UtcSeconds after) const;

  std::string expression_;
  std::shared_ptr<const TimeZone> zone_;
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<8> weekdays_;
  bool every_hour_ = false;
  bool any_day_ = false;
  bool any_weekday_ = false;
};

}  // namespace baton::schedule
