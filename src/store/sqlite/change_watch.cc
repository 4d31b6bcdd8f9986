#include "store/sqlite/change_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace baton::store::sqlite {

ChangeWatch::ChangeWatch(const std::vector<std::string>& paths)
    : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (inotify_ < 0) return;
  for (const std::string& path : paths) ::inotify_add_watch(inotify_, path.c_str(), IN_MODIFY);
}

ChangeWatch::ChangeWatch(ChangeWatch&& other) noexcept
    : inotify_(std::exchange(other.inotify_, -1)) {}

ChangeWatch& ChangeWatch::operator=(ChangeWatch&& other) noexcept {
  std::swap(inotify_, other.inotify_);
  return *this;
}

ChangeWatch::~ChangeWatch() {
  if (inotify_ >= 0) ::close(inotify_);
}

bool ChangeWatch::changed() const {
  if (inotify_ < 0) return false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool any = false;
  while (::read(inotify_, buffer.data(), buffer.size()) > 0) any = true;
  return any;
}

void ChangeWatch::wait(Instant until, int interrupt) const {
  const auto left = std::chrono::ceil<Millis>(until - BootClock::now());
  if (left <= Millis(0)) return;
  std::array<pollfd, 2> files{{{interrupt, POLLIN, 0}, {inotify_, POLLIN, 0}}};
  (void)::poll(files.data(), files.size(),
               static_cast<int>(std::min<Millis::rep>(left.count(), 60'000)));
}

}  // namespace baton::store::sqlite
