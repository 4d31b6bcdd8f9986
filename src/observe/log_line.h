#pragma once

// The format of a log line.

#include <chrono>
#include <string>
#include <string_view>

#include "observe/log.h"

namespace baton::observe {

struct LogRecord {
  std::chrono::system_clock::time_point time;
  LogLevel level = LogLevel::info;
  std::string_view logger;
  std::string_view message;
  std::string_view service;
  std::string_view node;  // unless a field says otherwise
  const LogFields& fields;
};

// Both end with a line break, the only one in them, and have at most `max` bytes or a few hundred:
// what is too long is cut, and fields for which there is no room are left out.
[[nodiscard]] std::string json_line(const LogRecord& record, std::size_t max);
[[nodiscard]] std::string text_line(const LogRecord& record, std::size_t max);

// Passwords in URLs and in password=… become ***.
[[nodiscard]] std::string without_passwords(std::string_view text);

}  // namespace baton::observe
