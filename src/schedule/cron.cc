#include "schedule/cron.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace baton::schedule {
namespace {

// 29 February is at most eight years away, over a year like 2100.
constexpr int kDaysToSearch = 9 * 366;

constexpr std::array<std::string_view, 12> kMonths = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                      "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdays = {"SUN", "MON", "TUE", "WED",
                                                       "THU", "FRI", "SAT"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kShort = {
    {{"@yearly", "0 0 1 1 *"},
     {"@annually", "0 0 1 1 *"},
     {"@monthly", "0 0 1 * *"},
     {"@weekly", "0 0 * * 0"},
     {"@daily", "0 0 * * *"},
     {"@midnight", "0 0 * * *"},
     {"@hourly", "0 * * * *"}}};

struct Field {
  std::string_view name;
  int least;
  int most;
  std::span<const std::string_view> words;
  int first_word;  // what the first of them stands for
};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  while (at <= text.size()) {
    const auto end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Error wrong(const Field& field, std::string_view text, std::string_view why) {
  return {.code = Code::bad_request,
          .message = "cron: " + std::string(field.name) + " '" + std::string(text.substr(0, 40)) +
                     "' " + std::string(why)};
}

// "it takes MON…SUN or 0 to 7".
std::string taken_by(const Field& field) {
  const char* words = field.words.size() == kMonths.size()     ? "JAN…DEC or "
                      : field.words.size() == kWeekdays.size() ? "MON…SUN or "
                                                               : "";
  return "it takes " + std::string(words) + std::to_string(field.least) + " to " +
         std::to_string(field.most);
}

Error unknown_word(const std::string& expression) {
  std::string words;
  for (const auto& [word, meaning] : kShort)
    words += (words.empty() ? "" : ", ") + std::string(word);
  return {.code = Code::bad_request,
          .message = "cron: '" + expression + "' is not known; there are " + words};
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x & ~0x20) == (y & ~0x20); });
}

std::optional<int> value_of(const Field& field, std::string_view text) {
  for (std::size_t i = 0; i < field.words.size(); ++i) {
    if (same_word(field.words[i], text)) return field.first_word + static_cast<int>(i);
  }
  if (text.empty() || text.size() > 4) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

template <std::size_t Size>
Result<void> read_item(const Field& field, std::string_view item, std::bitset<Size>& into) {
  const auto slash = item.find('/');
  const std::string_view range = item.substr(0, slash);
  int step = 1;
  if (slash != std::string_view::npos) {
    const auto given = value_of({field.name, 0, 0, {}, 0}, item.substr(slash + 1));
    if (!given || *given < 1) return wrong(field, item, "has a step that is not a number above 0");
    step = *given;
  }
  int from = field.least;
  int to = field.most;
  if (range != "*") {
    const auto dash = range.find('-');
    const auto first = value_of(field, range.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : value_of(field, range.substr(dash + 1));
    if (!first || !last) return wrong(field, item, "is not understood; " + taken_by(field));
    from = *first;
    to = dash == std::string_view::npos && slash != std::string_view::npos ? field.most : *last;
    if (from < field.least || to > field.most || *last > field.most) {
      return wrong(
          field, item,
          "is not from " + std::to_string(field.least) + " to " + std::to_string(field.most));
    }
    if (from > to) return wrong(field, item, "is a range that ends before it begins");
  }
  for (int value = from; value <= to; value += step) into.set(static_cast<std::size_t>(value));
  return {};
}

template <std::size_t Size>
Result<void> read_field(const Field& field, std::string_view text, std::bitset<Size>& into) {
  for (const auto item : split(text, ",")) {
    if (auto ok = read_item(field, item, into); !ok) return ok;
  }
  return {};
}

}  // namespace

Result<Cron> Cron::parse(std::string_view expression, std::shared_ptr<const TimeZone> zone) {
  Cron cron;
  cron.expression_ = std::string(expression.substr(0, 200));
  cron.zone_ = std::move(zone);
  const auto* known = std::find_if(kShort.begin(), kShort.end(),
                                   [&](const auto& entry) { return entry.first == expression; });
  if (known == kShort.end() && expression.starts_with('@')) return unknown_word(cron.expression_);
  auto fields = split(known != kShort.end() ? known->second : expression, " \t");
  std::erase(fields, std::string_view());
  if (fields.size() != 5 || expression.size() > 200) {
    return Error{.code = Code::bad_request,
                 .message = "cron: '" + cron.expression_ + "' has " +
                            std::to_string(fields.size()) +
                            " fields; five are needed: minute hour day month weekday"};
  }
  if (auto ok = read_field({"minute", 0, 59, {}, 0}, fields[0], cron.minutes_); !ok) {
    return ok.error();
  }
  if (auto ok = read_field({"hour", 0, 23, {}, 0}, fields[1], cron.hours_); !ok) return ok.error();
  if (auto ok = read_field({"day", 1, 31, {}, 0}, fields[2], cron.days_); !ok) return ok.error();
  if (auto ok = read_field({"month", 1, 12, kMonths, 1}, fields[3], cron.months_); !ok) {
    return ok.error();
  }
  if (auto ok = read_field({"weekday", 0, 7, kWeekdays, 0}, fields[4], cron.weekdays_); !ok) {
    return ok.error();
  }
  if (cron.weekdays_.test(7)) cron.weekdays_.set(0);
  cron.every_hour_ = fields[1].starts_with('*');
  cron.any_day_ = fields[2].starts_with('*');
  cron.any_weekday_ = fields[4].starts_with('*');
  // Over a whole 400-year cycle every date has occurred; eight years from any day will do for us.
  if (!cron.find(UtcSeconds(std::chrono::sys_days(std::chrono::year(2024) / 1 / 1)))) {
    return Error{.code = Code::bad_request,
                 .message = "cron: '" + cron.expression_ + "' never fires: no date matches it"};
  }
  return cron;
}

bool Cron::matches(std::chrono::local_days day) const {
  const std::chrono::year_month_day date{day};
  if (!months_.test(static_cast<unsigned>(date.month()))) return false;
  const bool by_day = days_.test(static_cast<unsigned>(date.day()));
  const bool by_weekday = weekdays_.test(std::chrono::weekday(day).c_encoding());
  // As crontab(5): a day that starts with * does not count as restricted.
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<UtcSeconds> Cron::first_of(std::chrono::local_days day, UtcSeconds after) const {
  using Kind = TimeZone::Moments::Kind;
  std::optional<UtcSeconds> best;
  const auto offer = [&](UtcSeconds at) {
    if (at > after && (!best || at < *best)) best = at;
  };
  for (std::size_t hour = 0; hour < hours_.size(); ++hour) {
    if (!hours_.test(hour)) continue;
    const LocalSeconds begins = day + std::chrono::hours(hour);
    // Nothing of an hour that was over a day ago, or is after what we have, can be better.
    if (begins.time_since_epoch() + std::chrono::hours(27) < after.time_since_epoch()) continue;
    if (best && begins.time_since_epoch() - std::chrono::hours(27) > best->time_since_epoch()) {
      break;
    }
    for (std::size_t minute = 0; minute < minutes_.size(); ++minute) {
      if (!minutes_.test(minute)) continue;
      const auto moments = zone_->to_utc(begins + std::chrono::minutes(minute));
      if (moments.kind == Kind::never && every_hour_) continue;
      offer(moments.first);
      if (moments.kind == Kind::twice && every_hour_) offer(moments.second);
    }
  }
  return best;
}

std::optional<UtcSeconds> Cron::find(UtcSeconds after) const {
  auto day = std::chrono::floor<std::chrono::days>(zone_->to_local(after)) - std::chrono::days(1);
  for (int i = 0; i < kDaysToSearch; ++i, day += std::chrono::days(1)) {
    if (!matches(day)) continue;
    if (auto found = first_of(day, after)) return found;
  }
  return std::nullopt;
}

UtcSeconds Cron::next(UtcSeconds after) const { return find(after).value_or(UtcSeconds::max()); }

}  // namespace baton::schedule
