#include "store/sqlite/wake_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include <cstdint>
#include <memory>
#include <string_view>

#include "baton/grant_id.h"

namespace baton::store::sqlite {
namespace {

constexpr mode_t kWriteByOthers = S_IWGRP | S_IWOTH;
constexpr std::size_t kNameLength = 16;

// Users that may read the database may enter the directory.
mode_t directory_mode(mode_t file) { return file | ((file & 0444) >> 2); }

bool is_name(std::string_view name) {
  return name.size() == kNameLength && name.find_first_not_of("0123456789abcdef") == name.npos;
}

bool is_trusted(uid_t owner, const Access& access) {
  return owner == ::geteuid() || owner == access.owner || owner == 0;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Access access_of(const std::string& database) {
  struct stat file {};
  if (::stat(database.c_str(), &file) != 0) return {.owner = ::geteuid()};
  return {.owner = file.st_uid, .mode = file.st_mode & 0777};
}

// FNV-1a. Two channels that meet would only be woken together.
std::string wake_file_name(const std::string& channel) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : channel) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return to_string(GrantId{0, hash}).substr(kNameLength);
}

std::optional<WakeDirectory> WakeDirectory::open(const std::string& path, const Access& access) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!directory || ::fstat(directory.get(), &found) != 0) return std::nullopt;
  if (!is_trusted(found.st_uid, access)) return std::nullopt;
  if ((found.st_mode & kWriteByOthers & ~access.mode) != 0) return std::nullopt;
  return WakeDirectory(std::move(directory), access);
}

std::optional<WakeDirectory> WakeDirectory::make(const std::string& path, const Access& access) {
  const bool made = ::mkdir(path.c_str(), 0700) == 0;
  auto opened = open(path, access);
  struct stat found {};
  // The umask may have taken away what the users of the database need.
  if (made && opened && ::fstat(opened->directory_.get(), &found) == 0 &&
      found.st_uid == ::geteuid()) {
    ::fchmod(opened->directory_.get(), directory_mode(access.mode));
  }
  return opened;
}

bool WakeDirectory::is_wake_file(const struct stat& file) const {
  return S_ISREG(file.st_mode) && file.st_nlink == 1 &&
         (is_trusted(file.st_uid, access_) || (access_.mode & kWriteByOthers) != 0);
}

Descriptor WakeDirectory::open_file(const std::string& name, int flags) const {
  if (!is_name(name)) return Descriptor();
  struct stat found {};
  // Looked at first, because already the opening of a FIFO or a device can have an effect.
  if (::fstatat(directory_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!is_wake_file(found)) return Descriptor();
    flags &= ~O_CREAT;
  } else if (errno != ENOENT) {
    return Descriptor();
  }
  const bool makes = (flags & O_CREAT) != 0;
  if (makes) flags |= O_EXCL;
  Descriptor file(
      ::openat(directory_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file || ::fstat(file.get(), &found) != 0 || !is_wake_file(found)) return Descriptor();
  if (makes) ::fchmod(file.get(), access_.mode);
  return file;
}

bool WakeDirectory::names(const std::string& name, const Descriptor& file) const {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file.get(), &opened) == 0 &&
         ::fstatat(directory_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void WakeDirectory::remove_if_abandoned(const std::string& name, const Descriptor& file) const {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && names(name, file)) {
    ::unlinkat(directory_.get(), name.c_str(), 0);
  }
}

void WakeDirectory::visit(const std::function<bool(const std::string& name)>& visit) const {
  // A descriptor of its own, because closedir() closes the one that it reads.
  Descriptor again(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseDirectory> entries(again ? ::fdopendir(again.get()) : nullptr);
  if (entries == nullptr) return;
  [[maybe_unused]] const int owned_by_entries = again.release();
  while (const dirent* entry = ::readdir(entries.get())) {
    if (is_name(entry->d_name) && !visit(entry->d_name)) return;
  }
}

}  // namespace baton::store::sqlite
