#include "schedule/time_zone.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "core/bad_request.h"

namespace baton::schedule {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxFileBytes = 1 << 20;

bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || name.front() == '/' || name.front() == '.') return false;
  if (name.find("..") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
           c == '_' || c == '-' || c == '+';
  });
}

std::string zone_directory() {
  const char* given = std::getenv("TZDIR");
  return given != nullptr && *given != '\0' ? given : "/usr/share/zoneinfo";
}

// Reads big-endian numbers; out of bounds gives zeros and is noticed at the end.
class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}
  std::int64_t number(std::size_t size) {
    if (data_.size() < size) {
      short_ = true;
      return 0;
    }
    std::uint64_t value = (static_cast<unsigned char>(data_[0]) & 0x80U) != 0 ? ~0ULL : 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = (value << 8U) | static_cast<unsigned char>(data_[i]);
    }
    data_.remove_prefix(size);
    return static_cast<std::int64_t>(value);
  }
  void skip(std::size_t size) {
    if (data_.size() < size) short_ = true;
    data_.remove_prefix(std::min(size, data_.size()));
  }
  [[nodiscard]] bool starts_with(std::string_view text) const { return data_.starts_with(text); }
  [[nodiscard]] std::string_view rest() const { return data_; }
  [[nodiscard]] bool too_short() const { return short_; }

 private:
  std::string_view data_;
  bool short_ = false;
};

struct Header {
  char version = 0;
  std::size_t utc_flags = 0;
  std::size_t standard_flags = 0;
  std::size_t leaps = 0;
  std::size_t times = 0;
  std::size_t types = 0;
  std::size_t letters = 0;

  [[nodiscard]] std::size_t body(std::size_t time_size) const {
    return times * (time_size + 1) + types * 6 + letters + leaps * (time_size + 4) +
           standard_flags + utc_flags;
  }
};

Header read_header(Bytes& in) {
  Header header;
  in.skip(4);
  header.version = static_cast<char>(in.number(1));
  in.skip(15);
  for (std::size_t* count : {&header.utc_flags, &header.standard_flags, &header.leaps,
                             &header.times, &header.types, &header.letters}) {
    *count = static_cast<std::size_t>(in.number(4)) & 0xFFFFF;
  }
  return header;
}

// For the text of a POSIX rule.
class RuleText {
 public:
  explicit RuleText(std::string_view text) : text_(text) {}
  [[nodiscard]] bool empty() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool name() {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    std::size_t size = 0;
    if (take('<')) {
      size = text_.find('>');
      if (size == std::string_view::npos) return false;
      text_.remove_prefix(size + 1);
      return true;
    }
    while (size < text_.size() && letter(text_[size])) ++size;
    text_.remove_prefix(size);
    return size >= 3;
  }
  bool number(int& value) {
    std::size_t size = 0;
    value = 0;
    while (size < text_.size() && size < 4 && text_[size] >= '0' && text_[size] <= '9') {
      value = value * 10 + (text_[size++] - '0');
    }
    text_.remove_prefix(size);
    return size > 0;
  }
  // [+-]hh[:mm[:ss]]
  bool time(seconds& value) {
    const bool minus = take('-');
    if (!minus) take('+');
    int h = 0;
    int m = 0;
    int s = 0;
    if (!number(h) || h > 167) return false;
    if (take(':') && (!number(m) || m > 59)) return false;
    if (take(':') && (!number(s) || s > 59)) return false;
    value = seconds(h * 3600 + m * 60 + s);
    if (minus) value = -value;
    return true;
  }
  bool change(YearlyChange& change) {
    if (take('M')) {
      change.kind = YearlyChange::Kind::month_week_day;
      if (!number(change.month) || !take('.') || !number(change.week) || !take('.') ||
          !number(change.day)) {
        return false;
      }
      if (change.month < 1 || change.month > 12 || change.week < 1 || change.week > 5 ||
          change.day > 6) {
        return false;
      }
    } else {
      change.kind = take('J') ? YearlyChange::Kind::julian : YearlyChange::Kind::day_of_year;
      if (!number(change.day) || change.day > 365) return false;
    }
    return !take('/') || time(change.at);
  }

 private:
  std::string_view text_;
};

std::chrono::sys_days day_of(const YearlyChange& change, std::chrono::year year) {
  using namespace std::chrono;
  switch (change.kind) {
    case YearlyChange::Kind::month_week_day: {
      const month m(static_cast<unsigned>(change.month));
      const weekday day(static_cast<unsigned>(change.day));
      if (change.week == 5) return sys_days(year / m / weekday_last(day));
      return sys_days(year / m / day[static_cast<unsigned>(change.week)]);
    }
    case YearlyChange::Kind::julian: {  // 1 to 365, never counting 29 February
      const int extra = year.is_leap() && change.day >= 60 ? 1 : 0;
      return sys_days(year / January / 1) + days(change.day - 1 + extra);
    }
    case YearlyChange::Kind::day_of_year: break;
  }
  return sys_days(year / January / 1) + days(change.day);
}

}  // namespace

Result<YearlyRule> parse_yearly_rule(std::string_view text) {
  const Error wrong =
      bad_request("not a POSIX time zone rule: '" + std::string(text.substr(0, 80)) + "'");
  YearlyRule rule;
  RuleText in(text);
  seconds west{0};
  if (!in.name() || !in.time(west)) return wrong;
  rule.standard = -west;
  if (in.empty()) return rule;
  rule.has_summer = true;
  rule.summer = rule.standard + std::chrono::hours(1);
  if (!in.name()) return wrong;
  if (!in.take(',')) {
    if (!in.time(west) || !in.take(',')) return wrong;
    rule.summer = -west;
  }
  if (!in.change(rule.begin) || !in.take(',') || !in.change(rule.end) || !in.empty()) return wrong;
  return rule;
}

Result<TimeZone> TimeZone::parse(std::string_view name, std::string_view file) {
  const Error wrong = bad_request("the file of time zone '" + std::string(name) + "' is damaged");
  Bytes in(file);
  if (!in.starts_with("TZif")) return wrong;
  Header header = read_header(in);
  std::size_t time_size = 4;
  if (header.version >= '2') {
    in.skip(header.body(4));
    if (!in.starts_with("TZif")) return wrong;
    header = read_header(in);
    time_size = 8;
  }
  if (header.types == 0 || header.types > 256 || in.too_short()) return wrong;
  TimeZone zone;
  zone.name_ = std::string(name);
  for (std::size_t i = 0; i < header.times; ++i) {
    zone.changes_.emplace_back(seconds(in.number(time_size)));
    if (in.too_short()) return wrong;
  }
  std::vector<std::size_t> types(header.times);
  for (auto& type : types) type = static_cast<std::size_t>(in.number(1)) & 0xFF;
  std::vector<seconds> offsets;
  for (std::size_t i = 0; i < header.types; ++i) {
    offsets.emplace_back(in.number(4));
    in.skip(2);
  }
  in.skip(header.letters + header.leaps * (time_size + 4) + header.standard_flags +
          header.utc_flags);
  if (in.too_short() || !std::is_sorted(zone.changes_.begin(), zone.changes_.end())) return wrong;
  zone.before_ = offsets.front();
  for (const std::size_t type : types) {
    if (type >= offsets.size()) return wrong;
    zone.offsets_.push_back(offsets[type]);
  }
  std::string_view footer = in.rest();
  if (time_size == 8 && footer.starts_with('\n')) {
    footer.remove_prefix(1);
    footer = footer.substr(0, footer.find('\n'));
    if (!footer.empty()) {
      auto rule = parse_yearly_rule(footer);
      if (!rule) return rule.error();
      zone.rule_ = *rule;
      zone.has_rule_ = true;
    }
  }
  return zone;
}

Result<std::shared_ptr<const TimeZone>> TimeZone::load(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const TimeZone>, std::less<>> known;
  if (!is_zone_name(name)) {
    return bad_request("'" + std::string(name.substr(0, 64)) +
                       "' is not the name of a time zone, such as Europe/Berlin");
  }
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(name); it != known.end()) return it->second;
  std::shared_ptr<const TimeZone> zone;
  if (name == "UTC") {
    TimeZone utc;
    utc.name_ = "UTC";
    zone = std::make_shared<const TimeZone>(std::move(utc));
  } else {
    const std::string path = zone_directory() + "/" + std::string(name);
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    if (file) content << file.rdbuf();
    const std::string data = content.str();
    if (data.empty() || data.size() > kMaxFileBytes) {
      return bad_request(
          "no time zone '" + std::string(name) +
          "' on this machine; is it spelt right, and is the package tzdata installed?");
    }
    auto parsed = parse(name, data);
    if (!parsed) return parsed.error();
    zone = std::make_shared<const TimeZone>(std::move(*parsed));
  }
  known.emplace(name, zone);
  return zone;
}

seconds TimeZone::offset(UtcSeconds at) const {
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), at);
  if (next == changes_.end() && has_rule_) return offset_by_rule(at);
  if (next == changes_.begin()) return before_;
  return offsets_[static_cast<std::size_t>(next - changes_.begin()) - 1];
}

seconds TimeZone::offset_by_rule(UtcSeconds at) const {
  if (!rule_.has_summer) return rule_.standard;
  const auto local_day = std::chrono::floor<std::chrono::days>(at + rule_.standard);
  const auto year = std::chrono::year_month_day(local_day).year();
  const UtcSeconds begin = day_of(rule_.begin, year) + rule_.begin.at - rule_.standard;
  const UtcSeconds end = day_of(rule_.end, year) + rule_.end.at - rule_.summer;
  const bool north = begin < end;
  const bool summer = north ? at >= begin && at < end : !(at >= end && at < begin);
  return summer ? rule_.summer : rule_.standard;
}

// There is one change between the two: found by halving, because a rule has no list of changes.
UtcSeconds TimeZone::change_between(UtcSeconds from, UtcSeconds to) const {
  const seconds before = offset(from);
  while (to - from > seconds(1)) {
    const UtcSeconds middle = from + (to - from) / 2;
    (offset(middle) == before ? from : to) = middle;
  }
  return to;
}

TimeZone::Moments TimeZone::to_utc(LocalSeconds local) const {
  // No zone is ever more than a day from UTC, and no two changes are that near to each other.
  const UtcSeconds guess(local.time_since_epoch());
  const seconds early = offset(guess - std::chrono::hours(26));
  const seconds late = offset(guess + std::chrono::hours(26));
  const UtcSeconds with_early = guess - early;
  const UtcSeconds with_late = guess - late;
  const bool early_fits = offset(with_early) == early;
  const bool late_fits = offset(with_late) == late;
  if (early_fits && late_fits && with_early != with_late) {
    return {std::min(with_early, with_late), std::max(with_early, with_late), Moments::Kind::twice};
  }
  if (early_fits) return {with_early, with_early, Moments::Kind::once};
  if (late_fits) return {with_late, with_late, Moments::Kind::once};
  const UtcSeconds change =
      change_between(guess - std::chrono::hours(26), guess + std::chrono::hours(26));
  return {change, change, Moments::Kind::never};
}

}  // namespace baton::schedule
