#include "apps/common/options.h"

#include <cstdlib>

#include "policy/duration.h"

namespace baton::apps {

void add_log(command_line::Command command, LogWords& words) {
  command.add("--log", words.format, "How to log on stdout: json, or text for people")
      .type("FORMAT")
      .last_counts()
      .shows_default();
  command.add("--log-level", words.level, "From which level: debug, info, warn or error")
      .type("LEVEL")
      .last_counts()
      .shows_default();
}

std::string read_log(const LogWords& words, observe::LogFormat& format, observe::LogLevel& level) {
  const auto known_format = observe::parse_log_format(words.format);
  if (!known_format) return "--log: json or text, not '" + words.format + "'";
  const auto known_level = observe::parse_log_level(words.level);
  if (!known_level) return "--log-level: debug, info, warn or error, not '" + words.level + "'";
  format = *known_format;
  level = *known_level;
  return {};
}

std::string read_times(std::initializer_list<Time> times) {
  for (const Time& time : times) {
    const auto read = policy::parse_duration(time.text);
    if (!read) return std::string(time.option) + ": " + read.error().message;
    if (*read < time.least || *read > time.most) {
      return std::string(time.option) + ": " + time.text + " is out of range";
    }
    time.into = *read;
  }
  return {};
}

std::string store_or(const std::string& typed, const char* fallback) {
  if (!typed.empty()) return typed;
  const char* store = std::getenv("BATON_STORE");
  return store != nullptr ? store : fallback;
}

std::string broker_or(const std::string& typed, const char* fallback) {
  if (!typed.empty()) return typed;
  const char* broker = std::getenv("BATON_BROKER");
  return broker != nullptr ? broker : fallback;
}

}  // namespace baton::apps
