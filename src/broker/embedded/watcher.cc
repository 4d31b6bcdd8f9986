#include "broker/embedded/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace baton::broker {
namespace {

// The kernel tells of a closed file just before it drops its locks.
constexpr int kSecondLookMs = 5;

}  // namespace

std::shared_ptr<Watcher> Watcher::start(const std::string& database, Millis lease) {
  return std::shared_ptr<Watcher>(new Watcher(database, lease));
}

Watcher::Watcher(const std::string& database, Millis lease)
    : lease_(lease),
      inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (inotify_ >= 0) {
    ::inotify_add_watch(inotify_, presence_path(database).c_str(), IN_ATTRIB | IN_CLOSE_WRITE);
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Watcher::~Watcher() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_event_, &one, sizeof one);
  thread_.join();
  if (inotify_ >= 0) ::close(inotify_);
  if (stop_event_ >= 0) ::close(stop_event_);
}

void Watcher::add(const Presence& presence, int slot, std::int64_t consumer) {
  const std::lock_guard lock(mutex_);
  presence.show(slot, consumer, lease_);
  shown_.push_back({&presence, slot, consumer});
}

void Watcher::remove(const Presence& presence) {
  const std::lock_guard lock(mutex_);
  std::erase_if(shown_, [&](const Shown& shown) { return shown.presence == &presence; });
}

std::uint64_t Watcher::seen() {
  const std::lock_guard lock(mutex_);
  return wakes_;
}

void Watcher::wait(std::uint64_t seen, Deadline until) {
  std::unique_lock lock(mutex_);
  const auto left = until - BootClock::now();
  if (left <= left.zero()) return;
  changed_.wait_until(lock, std::chrono::steady_clock::now() + left,
                      [&] { return wakes_ != seen; });
}

void Watcher::show_all() {
  const std::lock_guard lock(mutex_);
  for (const Shown& shown : shown_) shown.presence->show(shown.slot, shown.consumer, lease_);
}

void Watcher::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++wakes_;
  }
  changed_.notify_all();
}

std::pair<bool, bool> Watcher::read_events() const {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool any = false;
  bool closed = false;
  while (true) {
    const ssize_t size = ::read(inotify_, buffer.data(), buffer.size());
    if (size <= 0) return {any, closed};
    any = true;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      closed = closed || (event->mask & IN_CLOSE_WRITE) != 0;
      at += sizeof(inotify_event) + event->len;
    }
  }
}

void Watcher::run(const std::stop_token& stop) {
  const auto period = std::clamp<Millis>(lease_ / 5, Millis(20), Millis(1'000));
  Instant show_at = BootClock::now() + period;
  bool look_again = false;
  while (!stop.stop_requested()) {
    const auto left = std::chrono::ceil<Millis>(show_at - BootClock::now());
    int timeout = static_cast<int>(std::clamp<Millis::rep>(left.count(), 0, 1'000));
    if (look_again) timeout = std::min(timeout, kSecondLookMs);
    std::array<pollfd, 2> wanted{{{stop_event_, POLLIN, 0}, {inotify_, POLLIN, 0}}};
    const int ready = ::poll(wanted.data(), inotify_ >= 0 ? 2 : 1, timeout);
    if (BootClock::now() >= show_at) {
      show_all();
      show_at = BootClock::now() + period;
    }
    if (ready > 0 && wanted[1].revents != 0) {
      const auto [any, closed] = read_events();
      look_again = closed;
      if (any) wake();
    } else if (std::exchange(look_again, false)) {
      wake();
    }
  }
}

}  // namespace baton::broker
