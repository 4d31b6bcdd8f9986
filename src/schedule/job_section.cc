#include "schedule/job_section.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/trust.h"
#include "policy/duration.h"
#include "policy/suggest.h"

namespace baton::schedule {
namespace {

using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

constexpr std::array<std::string_view, 16> kKeys = {
    "enabled",     "fixed-delay",  "fixed-rate", "phase",       "cron",  "time-zone",
    "lock",        "jitter",       "misfire",    "on-crash",    "nodes", "backoff",
    "max-backoff", "report-after", "try-for",    "max-attempts"};
constexpr std::array<std::string_view, 3> kLockKeys = {"ttl", "try-for", "at-least-for"};
constexpr std::array<std::string_view, 2> kMisfireWords = {"run-once", "skip"};
constexpr std::array<std::string_view, 2> kCrashWords = {"rerun", "skip"};
constexpr std::array<std::string_view, 2> kBoolWords = {"true", "false"};

}  // namespace

Error expected(const YamlNode& node, const std::string& what) {
  return policy::yaml_error(
      node.line, node.key + " must be " + what + ", not " +
                     (node.kind == Kind::text ? "'" + node.text.substr(0, 60) + "'"
                                              : std::string(policy::kind_name(node.kind))));
}

Result<Millis> read_duration(const YamlNode& node, bool zero_too) {
  if (node.kind != Kind::text) return expected(node, "a duration");
  Millis time{0};
  std::int64_t number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, problem] = std::from_chars(node.text.data(), end, number);
  if (problem == std::errc() && rest == end) {
    time = Millis(number);
  } else {
    auto parsed = policy::parse_duration(node.text);
    if (!parsed) return expected(node, "milliseconds or a duration such as 30s");
    time = *parsed;
  }
  if (time < Millis(0) || (time == Millis(0) && !zero_too)) {
    return policy::yaml_error(node.line, node.key + " must be above zero, not " + node.text);
  }
  if (time > std::chrono::hours(24 * 366)) {
    return policy::yaml_error(node.line, node.key + " must be at most a year, not " + node.text);
  }
  return time;
}

namespace {

Result<void> read_into(const YamlNode& node, bool zero_too, std::optional<Millis>& into) {
  auto time = read_duration(node, zero_too);
  if (!time) return time.error();
  into = *time;
  return {};
}

Result<void> read_attempts(const YamlNode& node, JobSection& section) {
  int number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, problem] = std::from_chars(node.text.data(), end, number);
  if (node.kind != Kind::text || problem != std::errc() || rest != end || number < 0) {
    return expected(node, "a number of attempts, or 0 for no limit");
  }
  section.max_attempts = number;
  return {};
}

// The place of the word among `words`.
Result<std::size_t> read_word(const YamlNode& node, std::span<const std::string_view> words) {
  const auto it = std::find(words.begin(), words.end(), node.text);
  if (node.kind != Kind::text || it == words.end()) {
    return expected(node, std::string(words[0]) + " or " + std::string(words[1]));
  }
  return static_cast<std::size_t>(it - words.begin());
}

Result<void> read_text(const YamlNode& node, std::optional<std::string>& into) {
  if (node.kind != Kind::text || node.text.empty()) return expected(node, "text");
  into = node.text;
  return {};
}

Result<void> read_nodes(const YamlNode& node, JobSection& section) {
  std::vector<std::string> nodes;
  if (node.kind == Kind::text) {
    nodes.push_back(node.text);
  } else if (node.kind == Kind::list) {
    for (const YamlNode& item : node.items) {
      if (item.kind != Kind::text || item.text.empty()) {
        return policy::yaml_error(item.line, "nodes is a list of node ids");
      }
      nodes.push_back(item.text);
    }
  }
  if (nodes.empty()) return expected(node, "a list of node ids");
  section.nodes = std::move(nodes);
  return {};
}

}  // namespace

Result<void> read_lock_ttl(const YamlNode& node, JobSection& section) {
  auto ttl = read_duration(node, false);
  if (!ttl) return ttl.error();
  if (*ttl < core::margin(*ttl) * 2) {
    return policy::yaml_error(node.line, "ttl " + node.text + " is shorter than the margin for " +
                                             "renewing it; give at least 500ms");
  }
  if (*ttl > kMaxTtl) return policy::yaml_error(node.line, "ttl must be at most 24h");
  section.lock_ttl = *ttl;
  return {};
}

namespace {

Result<void> read_lock(const YamlNode& node, JobSection& section) {
  if (node.kind != Kind::map) return expected(node, "a map");
  for (const YamlNode& item : node.items) {
    Result<void> read;
    if (item.key == "ttl") {
      read = read_lock_ttl(item, section);
    } else if (item.key == "try-for") {
      read = read_into(item, true, section.try_for);
    } else if (item.key == "at-least-for") {
      read = read_into(item, true, section.at_least_for);
    } else {
      return policy::yaml_error(item.key_line, policy::unknown_word("key", item.key, kLockKeys));
    }
    if (!read) return read;
  }
  return {};
}

Result<void> read_when(const YamlNode& item, JobSection& section, bool& known) {
  known = true;
  if (item.key == "fixed-delay") return read_into(item, false, section.fixed_delay);
  if (item.key == "fixed-rate") return read_into(item, false, section.fixed_rate);
  if (item.key == "phase") return read_into(item, true, section.phase);
  if (item.key == "jitter") return read_into(item, true, section.jitter);
  if (item.key == "cron") return read_text(item, section.cron);
  if (item.key == "time-zone") return read_text(item, section.time_zone);
  if (item.key == "misfire") {
    auto word = read_word(item, kMisfireWords);
    if (!word) return word.error();
    section.misfire = *word == 0 ? Misfire::run_once : Misfire::skip;
    return {};
  }
  known = false;
  return {};
}

template <typename T>
void override_with(const std::optional<T>& given, T& value) {
  if (given) value = *given;
}

}  // namespace

Result<void> read_key(const YamlNode& item, JobSection& section) {
  bool known = false;
  if (auto read = read_when(item, section, known); known) return read;
  if (item.key == "lock") return read_lock(item, section);
  if (item.key == "nodes") return read_nodes(item, section);
  if (item.key == "max-attempts") return read_attempts(item, section);
  if (item.key == "try-for") return read_into(item, true, section.try_for);
  if (item.key == "backoff") return read_into(item, true, section.backoff);
  if (item.key == "max-backoff") return read_into(item, true, section.backoff_most);
  if (item.key == "report-after") return read_into(item, true, section.report_after);
  if (item.key == "enabled") {
    auto word = read_word(item, kBoolWords);
    if (!word) return word.error();
    section.enabled = *word == 0;
    return {};
  }
  if (item.key == "on-crash") {
    auto word = read_word(item, kCrashWords);
    if (!word) return word.error();
    section.on_crash = *word == 0 ? OnCrash::rerun : OnCrash::skip;
    return {};
  }
  return policy::yaml_error(item.key_line, policy::unknown_word("key", item.key, kKeys));
}

Result<void> check_section(const JobSection& section) {
  const int ways =
      (section.fixed_delay ? 1 : 0) + (section.fixed_rate ? 1 : 0) + (section.cron ? 1 : 0);
  if (ways > 1) {
    return policy::yaml_error(section.line,
                              "give one of fixed-delay, fixed-rate and cron, not several");
  }
  if (section.cron) {
    auto cron = Schedule::cron(*section.cron, section.time_zone.value_or("UTC"));
    if (!cron) return policy::yaml_error(section.line, cron.error().message);
  } else if (section.time_zone) {
    auto zone = Schedule::cron("@daily", *section.time_zone);
    if (!zone) return policy::yaml_error(section.line, zone.error().message);
  }
  return {};
}

Result<Schedule> schedule_of(const JobSection& section, const std::string& time_zone) {
  auto schedule = section.fixed_delay  ? Schedule::fixed_delay(*section.fixed_delay)
                  : section.fixed_rate ? Schedule::fixed_rate(*section.fixed_rate, section.phase)
                                       : Schedule::cron(section.cron.value_or(""), time_zone);
  if (!schedule) return policy::yaml_error(section.line, schedule.error().message);
  return schedule;
}

void apply(const JobSection& section, JobOptions& options) {
  override_with(section.lock_ttl, options.lock_ttl);
  override_with(section.try_for, options.try_for);
  override_with(section.at_least_for, options.at_least_for);
  override_with(section.jitter, options.jitter);
  override_with(section.misfire, options.misfire);
  override_with(section.on_crash, options.on_crash);
  override_with(section.max_attempts, options.max_attempts);
  override_with(section.enabled, options.enabled);
  override_with(section.nodes, options.nodes);
  override_with(section.backoff, options.backoff);
  override_with(section.backoff_most, options.backoff_most);
  override_with(section.report_after, options.report_after);
}

}  // namespace baton::schedule
