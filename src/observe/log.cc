#include "observe/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "observe/log_line.h"

namespace baton::observe {
namespace {

thread_local const LogScope* innermost = nullptr;

LogFields without_empty(LogFields fields) {
  std::erase_if(fields, [](const auto& field) { return field.second.empty(); });
  return fields;
}

// Drops a line that cannot be written: a service does not stop because nobody reads its log.
void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{file, POLLOUT, 0};
      if (poll(&ready, 1, 1000) == 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) {
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
  const auto* found = std::find(kLevels.begin(), kLevels.end(), text);
  if (found == kLevels.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kLevels.begin());
}

std::optional<LogFormat> parse_log_format(std::string_view text) {
  if (text == "json") return LogFormat::json;
  if (text == "text") return LogFormat::text;
  return std::nullopt;
}

LogScope::LogScope(LogFields fields)
    : fields_(without_empty(std::move(fields))), around_(innermost) {
  innermost = this;
}

LogScope::~LogScope() { innermost = around_; }

LogFields LogScope::current() {
  LogFields all;
  for (const LogScope* scope = innermost; scope != nullptr; scope = scope->around_) {
    for (auto field = scope->fields_.rbegin(); field != scope->fields_.rend(); ++field) {
      const bool replaced = std::any_of(
          all.begin(), all.end(), [&](const auto& known) { return known.first == field->first; });
      if (!replaced) all.push_back(*field);
    }
  }
  std::reverse(all.begin(), all.end());
  return all;
}

struct Log::Out {
  std::mutex mutex;
};

Log::Log(LogOptions options) : options_(std::move(options)), out_(std::make_unique<Out>()) {}
Log::~Log() = default;

Logger Log::named(std::string name) { return {*this, std::move(name)}; }

void Log::write(LogLevel level, std::string_view logger, std::string_view message,
                const LogFields& fields) {
  LogFields all = LogScope::current();
  for (const auto& field : fields) {
    std::erase_if(all, [&](const auto& known) { return known.first == field.first; });
    if (!field.second.empty()) all.push_back(field);
  }
  const LogRecord record{.time = std::chrono::system_clock::now(),
                         .level = level,
                         .logger = logger,
                         .message = message,
                         .service = options_.service,
                         .node = options_.node,
                         .fields = all};
  const std::string line = options_.format == LogFormat::json
                               ? json_line(record, options_.max_line)
                               : text_line(record, options_.max_line);
  const std::lock_guard lock(out_->mutex);
  write_all(options_.file, line);
}

}  // namespace baton::observe
