#include "cli/cron/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace baton::cli {
namespace {

constexpr Millis kRest{100};

}  // namespace

FileWatch::FileWatch(std::filesystem::path path)
    : path_(std::move(path)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  // The directory: editors and deployments put another file into the place of the first.
  const auto parent = path_.parent_path();
  if (inotify_ >= 0) {
    inotify_add_watch(inotify_, parent.empty() ? "." : parent.c_str(),
                      IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_MODIFY | IN_DELETE);
  }
  known_ = seen_ = identity();
}

FileWatch::~FileWatch() {
  if (inotify_ >= 0) close(inotify_);
}

FileWatch::Identity FileWatch::identity() const {
  struct stat found {};
  if (stat(path_.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size,
          found.st_ctim.tv_sec * std::int64_t{1'000'000'000} + found.st_ctim.tv_nsec};
}

bool FileWatch::changed() {
  std::array<char, 4096> events;
  while (inotify_ >= 0 && read(inotify_, events.data(), events.size()) > 0) {
  }
  const Identity now = identity();
  if (now != seen_) {
    seen_ = now;
    seen_at_ = BootClock::now();
    return false;
  }
  if (seen_ == known_ || BootClock::now() < seen_at_ + kRest) return false;
  known_ = seen_;
  return true;
}

Millis FileWatch::look_within() const { return seen_ == known_ ? kLookEvery : kRest; }

}  // namespace baton::cli
