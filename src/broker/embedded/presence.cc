#include "broker/embedded/presence.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <utility>

namespace baton::broker {
namespace {

constexpr int kSlots = 4096;

struct Slot {
  std::int64_t consumer = 0;
  std::int64_t shown_ns = 0;  // CLOCK_BOOTTIME; no lock outlives a boot
  std::int64_t lease_ns = 0;
  std::int64_t unused = 0;
};

off_t offset_of(int slot) { return static_cast<off_t>(slot) * static_cast<off_t>(sizeof(Slot)); }

struct flock range_of(int slot, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = offset_of(slot);
  range.l_len = sizeof(Slot);
  return range;
}

std::int64_t now_ns() { return BootClock::now().time_since_epoch().count(); }

Error cannot(const std::string& what, const std::string& path) {
  const int problem = errno;
  const bool rights = problem == EACCES || problem == EPERM;
  return {.code = rights ? Code::unauthorized : Code::unavailable,
          .message = "cannot " + what + " " + path + ": " + std::strerror(problem),
          .retryable = !rights};
}

}  // namespace

std::string presence_path(const std::string& database) { return database + "-consumers"; }

Result<Presence> Presence::open(const std::string& database) {
  const std::string path = presence_path(database);
  struct stat like {};
  if (::stat(database.c_str(), &like) != 0) return cannot("find", database);
  const mode_t mode = like.st_mode & 0666;
  // Exclusive at first, so that the mode is set of a file that is ours; never through a link.
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd >= 0) {
    ::fchmod(fd, mode);
  } else if (errno == EEXIST) {
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }
  if (fd < 0) return cannot("open", path);
  Presence presence(fd);
  struct stat found {};
  if (::fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
    return Error{.code = Code::bad_store, .message = path + " is not a regular file: remove it"};
  }
  return presence;
}

Presence::Presence(Presence&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Presence& Presence::operator=(Presence&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Presence::~Presence() {
  if (fd_ < 0) return;
  // A child of a fork may have a copy of the descriptor, which would keep the slot.
  struct flock all {};
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  ::fcntl(fd_, F_OFD_SETLK, &all);
  ::close(fd_);
}

Result<int> Presence::take_slot() {
  for (int slot = 0; slot < kSlots; ++slot) {
    struct flock range = range_of(slot, F_WRLCK);
    if (::fcntl(fd_, F_OFD_SETLK, &range) == 0) return slot;
    if (errno != EAGAIN && errno != EACCES) {
      return Error{.code = Code::unavailable,
                   .message = std::string("cannot lock a consumer's slot: ") + std::strerror(errno),
                   .retryable = true};
    }
  }
  return Error{
      .code = Code::unavailable,
      .message = "there are " + std::to_string(kSlots) + " consumers, and no more are possible",
      .retryable = true};
}

void Presence::show(int slot, std::int64_t consumer, Millis lease) const {
  const Slot shown{consumer, now_ns(), std::chrono::nanoseconds(lease).count(), 0};
  // If this fails, others take the consumer for stopped, and it loses its deliveries: that is safe.
  [[maybe_unused]] const auto written = ::pwrite(fd_, &shown, sizeof shown, offset_of(slot));
}

bool Presence::lives(int slot, std::int64_t consumer) const {
  struct flock range = range_of(slot, F_WRLCK);
  if (::fcntl(fd_, F_OFD_GETLK, &range) != 0) return true;
  if (range.l_type == F_UNLCK) return false;
  Slot found;
  if (::pread(fd_, &found, sizeof found, offset_of(slot)) != ssize_t{sizeof found}) return false;
  return found.consumer == consumer && now_ns() - found.shown_ns <= found.lease_ns;
}

void Presence::poke() const { ::futimens(fd_, nullptr); }

}  // namespace baton::broker
