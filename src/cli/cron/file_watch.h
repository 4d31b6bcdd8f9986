#pragma once

// Whether a file has changed: at once by inotify, and where that does not see it (a network file
// system, a link into another directory), by looking now and then.

#include <cstdint>
#include <filesystem>
#include <tuple>

#include "baton/clock.h"

namespace baton::cli {

class FileWatch {
 public:
  static constexpr Millis kLookEvery{2'000};

  explicit FileWatch(std::filesystem::path path);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Readable when there may be something to look at; -1 without inotify.
  [[nodiscard]] int file() const { return inotify_; }

  // Whether it is another file, or has another content, than when this was last true. A change
  // counts once it has rested for a moment, so that a file that is being written is not read.
  bool changed();

  // How long at most until changed() is to be asked again.
  [[nodiscard]] Millis look_within() const;

 private:
  // Device, inode, size and the time of the last change; of a file that is not there, zeros.
  using Identity = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;
  [[nodiscard]] Identity identity() const;

  const std::filesystem::path path_;
  int inotify_;
  Identity known_;
  Identity seen_;
  Instant seen_at_{};
};

}  // namespace baton::cli
