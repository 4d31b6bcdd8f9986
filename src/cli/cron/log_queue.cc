#include "cli/cron/log_queue.h"

#include <chrono>
#include <utility>

namespace baton::cli {
namespace {

constexpr std::size_t kMaxBytes = 1U << 20U;
constexpr std::size_t kPerLine = 200;  // about what a line needs beside its text
constexpr std::chrono::seconds kPatience{2};

}  // namespace

LogQueue::LogQueue(observe::LogOptions options)
    : shared_(std::make_shared<Shared>(std::move(options))) {
  std::thread([shared = shared_] { run(shared); }).detach();
}

LogQueue::~LogQueue() {
  std::unique_lock lock(shared_->mutex);
  shared_->closing = true;
  shared_->change.notify_all();
  shared_->change.wait_for(lock, kPatience, [this] { return shared_->over; });
}

void LogQueue::write(observe::LogLevel level, std::string logger, std::string message,
                     observe::LogFields fields) {
  if (!shared_->log.shows(level)) return;
  const std::size_t size = message.size() + kPerLine;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->bytes + size > kMaxBytes) {
    ++shared_->dropped;
    return;
  }
  shared_->bytes += size;
  shared_->lines.push_back({level, std::move(logger), std::move(message), std::move(fields), size});
  shared_->change.notify_all();
}

void LogQueue::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->change.wait(lock, [&] { return !shared->lines.empty() || shared->closing; });
    if (shared->lines.empty()) break;
    const Line line = std::move(shared->lines.front());
    shared->lines.pop_front();
    const std::uint64_t dropped = std::exchange(shared->dropped, 0);
    lock.unlock();
    shared->log.write(line.level, line.logger, line.message, line.fields);
    if (dropped > 0) {
      shared->log.write(observe::LogLevel::warn, "baton.cron", "LOG_LINES_DROPPED",
                        {{"lines", std::to_string(dropped)}});
    }
    lock.lock();
    shared->bytes -= line.size;
  }
  shared->over = true;
  shared->change.notify_all();
}

}  // namespace baton::cli
