#include "cli/wait_progress.h"

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>

#include <fmt/core.h>

namespace baton::cli {
namespace {

// A lock that is free at once needs no word.
constexpr Millis kBeforeFirstLook{300};
constexpr Millis kLookEvery{1'000};
// Bounds how long the end of the wait is held up by a look that is under way.
constexpr Millis kLookFor{500};

std::string ordinal(std::size_t number) {
  static constexpr std::array<const char*, 4> kEndings = {"th", "st", "nd", "rd"};
  const bool teen = number % 100 / 10 == 1;
  const auto digit = number % 10;
  return std::to_string(number) + kEndings[teen || digit > 3 ? 0 : digit];
}

// Nothing if our owner is not in the part of the queue that the store shows, or stands there twice.
std::optional<std::size_t> place_in_line(const LockInfo& info, const std::string& owner) {
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < info.waiters.size(); ++i) {
    if (info.waiters[i].owner != owner) continue;
    if (place) return std::nullopt;
    place = i + 1;
  }
  return place;
}

std::string describe(const std::string& name, const Result<LockInfo>& info,
                     const std::string& owner) {
  std::string text = "waiting for " + name;
  if (!info) return text + "; the store does not answer";
  if (!info->holders.empty()) {
    text += ", held by " + info->holders.front().owner;
    const auto others = info->holders.size() - 1;
    if (others > 0) text += fmt::format(" and {} other{}", others, others == 1 ? "" : "s");
  }
  if (const auto place = place_in_line(*info, owner)) text += ", " + ordinal(*place) + " in line";
  return text;
}

bool in_foreground() { return tcgetpgrp(STDERR_FILENO) == getpgrp(); }

void show(const std::stop_token& stop, Output& out, LockClient locks, const LockName& name) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  Millis pause = kBeforeFirstLook;
  while (true) {
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, pause, [] { return false; });
    if (stop.stop_requested()) return;
    pause = kLookEvery;
    if (!in_foreground()) continue;
    const std::string text = describe(print_path(name), locks.get(name, kLookFor), locks.owner());
    if (!stop.stop_requested()) out.progress(text);
  }
}

}  // namespace

WaitProgress::WaitProgress(Output& out, LockClient locks, LockName name) : out_(out) {
  if (!out.on_terminal()) return;
  thread_ = std::jthread([&out, locks = std::move(locks), name = std::move(name)](
                             const std::stop_token& stop) { show(stop, out, locks, name); });
}

WaitProgress::~WaitProgress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  out_.end_progress();
}

}  // namespace baton::cli
