#pragma once

// Logs: one object a line, on stdout, with what every line inside a scope has in common.
//
//   observe::Log log({.service = "gateway", .node = "gw-1"});
//   const observe::Logger out = log.named("signals");
//   const observe::LogScope scope{{"correlationId", id}};
//   out.info("EVENT_RECEIVED", {{"eventType", type}});
//
// {"@timestamp":"2026-02-17T23:30:08.197Z","level":"INFO","logger_name":"signals",
//  "message":"EVENT_RECEIVED","service":"gateway","node":"gw-1","correlationId":"…","eventType":"…"}
//
// Values are text. Those of keys that are called like a secret, and passwords in URLs, are hidden.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/export.h"

namespace baton::observe {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { json, text };

[[nodiscard]] BATON_EXPORT std::optional<LogLevel> parse_log_level(std::string_view text);
[[nodiscard]] BATON_EXPORT std::optional<LogFormat> parse_log_format(std::string_view text);

struct LogOptions {
  std::string service;
  std::string node;
  LogFormat format = LogFormat::json;
  LogLevel level = LogLevel::info;  // and above
  int file = 1;                     // stdout; stays the caller's
  std::size_t max_line = 16U << 10U;
};

using LogFields = std::vector<std::pair<std::string, std::string>>;

// Everything logged by this thread until the end of the scope carries these fields, on top of those
// of the scopes around it, of which it replaces the same keys. Empty values are left out.
class BATON_EXPORT LogScope {
 public:
  explicit LogScope(LogFields fields);
  LogScope(std::initializer_list<LogFields::value_type> fields) : LogScope(LogFields(fields)) {}
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

  // The fields that a line logged here would carry: to open the same scope on another thread.
  [[nodiscard]] static LogFields current();

 private:
  const LogFields fields_;
  const LogScope* const around_;
};

class Logger;

// Thread-safe: a line is written by one call, so lines never mix.
class BATON_EXPORT Log {
 public:
  explicit Log(LogOptions options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  [[nodiscard]] Logger named(std::string name);
  [[nodiscard]] bool shows(LogLevel level) const { return level >= options_.level; }
  void write(LogLevel level, std::string_view logger, std::string_view message,
             const LogFields& fields);

 private:
  const LogOptions options_;
  struct Out;
  const std::unique_ptr<Out> out_;
};

// Cheap to copy; the Log outlives it. One that was made without a Log is silent.
class BATON_EXPORT Logger {
 public:
  Logger() = default;
  Logger(Log& log, std::string name) : log_(&log), name_(std::move(name)) {}

  void log(LogLevel level, std::string_view message, const LogFields& fields = {}) const {
    if (log_ != nullptr && log_->shows(level)) log_->write(level, name_, message, fields);
  }
  void debug(std::string_view message, const LogFields& fields = {}) const {
    log(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, const LogFields& fields = {}) const {
    log(LogLevel::info, message, fields);
  }
  void warn(std::string_view message, const LogFields& fields = {}) const {
    log(LogLevel::warn, message, fields);
  }
  void error(std::string_view message, const LogFields& fields = {}) const {
    log(LogLevel::error, message, fields);
  }

 private:
  Log* log_ = nullptr;
  std::string name_;
};

}  // namespace baton::observe
