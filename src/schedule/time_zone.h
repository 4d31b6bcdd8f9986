#pragma once

// A time zone as the files of /usr/share/zoneinfo (TZif, RFC 8536) give it. The standard library
// of g++ 12 has none, and the C library's depends on a variable of the whole process.
// Not Debian's date library (Howard Hinnant's, 3.0.1): with the system's files it ignores the rule
// at the end of a file, so that Europe/Berlin has no summer time from 2038 on, and zones whose
// files list no changes ("slim") have none at all.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"

namespace baton::schedule {

using UtcSeconds = std::chrono::sys_seconds;
using LocalSeconds = std::chrono::local_seconds;  // what the clocks on the wall show

// A day of the year on which clocks change, as the POSIX rule behind a TZif file says.
struct YearlyChange {
  enum class Kind { month_week_day, julian, day_of_year } kind = Kind::month_week_day;
  int month = 0;
  int week = 0;  // 5: the last
  int day = 0;
  std::chrono::seconds at = std::chrono::hours(2);  // local time before the change
};

// The rule for times after the last change in the file.
struct YearlyRule {
  std::chrono::seconds standard{0};
  std::chrono::seconds summer{0};
  bool has_summer = false;
  YearlyChange begin;
  YearlyChange end;
};

// "CET-1CEST,M3.5.0,M10.5.0/3"
[[nodiscard]] Result<YearlyRule> parse_yearly_rule(std::string_view text);

class TimeZone {
 public:
  // A name of the database, such as Europe/Berlin; UTC needs no database. Read once a process.
  static Result<std::shared_ptr<const TimeZone>> load(std::string_view name);

  static Result<TimeZone> parse(std::string_view name, std::string_view file);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::chrono::seconds offset(UtcSeconds at) const;
  [[nodiscard]] LocalSeconds to_local(UtcSeconds at) const {
    return LocalSeconds(at.time_since_epoch() + offset(at));
  }

  // When the clocks on the wall show `local`: once; twice, where they are put back; never, where
  // they are put forward, and then first and second are both the moment of the change.
  struct Moments {
    UtcSeconds first;
    UtcSeconds second;
    enum class Kind { once, twice, never } kind = Kind::once;
  };
  [[nodiscard]] Moments to_utc(LocalSeconds local) const;

 private:
  [[nodiscard]] std::chrono::seconds offset_by_rule(UtcSeconds at) const;
  [[nodiscard]] UtcSeconds change_between(UtcSeconds from, UtcSeconds to) const;

  std::string name_;
  std::vector<UtcSeconds> changes_;            // ascending
  std::vector<std::chrono::seconds> offsets_;  // from the change of the same place on
  std::chrono::seconds before_{0};             // before the first change
  bool has_rule_ = false;
  YearlyRule rule_;
};

}  // namespace baton::schedule
