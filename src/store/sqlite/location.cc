#include "store/sqlite/location.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <sqlite3.h>

#include "store/sqlite/database.h"

namespace baton::store::sqlite {
namespace {

namespace fs = std::filesystem;

// From statfs(2), linux/magic.h and the filesystems' own documentation. FUSE may be local, but
// nothing says so.
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 22> kNetworkFilesystems{{
    {0x6969, "NFS"},
    {0x517B, "SMB"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},
    {0x01021997, "9P"},
    {0x65735546, "FUSE"},
    {0x00C36400, "Ceph"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},
    {0x5346414F, "AFS"},
    {0x6B414653, "kAFS"},
    {0x73757245, "Coda"},
    {0x564C, "NCP"},
    {0x786F4256, "VirtualBox shared folder"},
    {0xAAD7AAEA, "PanFS"},
    {0x19830326, "BeeGFS"},
    {0x20030528, "OrangeFS"},
    {0xBEEFDEAD, "StorNext"},
    {0xBACBACBC, "VMware shared folder"},
    {0x7C7C6673, "Parallels shared folder"},
}};

Error bad_url(std::string message) {
  return {.code = Code::bad_url, .message = std::move(message)};
}

Result<void> sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};  // one that we may enter but not read: the file itself is synced anyway
  const int failed = ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  if (failed != 0 && failed != EINVAL) {
    return explain(SQLITE_IOERR, directory.string(), {}, failed);
  }
  return {};
}

// In a directory that others can write, somebody may have put something else at the file's place.
Result<void> check_entry(const std::string& path) {
  struct stat entry {};
  if (::lstat(path.c_str(), &entry) != 0) return {};
  if (S_ISLNK(entry.st_mode) && entry.st_uid != ::geteuid() && entry.st_uid != 0) {
    return Error{.code = Code::bad_store,
                 .message = path + " is a link that another user has made: name the file itself"};
  }
  // A FIFO or a device would block the process that opens it, or do something.
  if (::stat(path.c_str(), &entry) == 0 && !S_ISREG(entry.st_mode)) {
    return Error{.code = Code::bad_store,
                 .message = path + " is not a regular file: name another one"};
  }
  // SQLite keeps one log for each name. Writers by different names do not see each other's locks,
  // and damage the file.
  if (entry.st_nlink > 1) {
    return Error{.code = Code::bad_store,
                 .message = path + " has " + std::to_string(entry.st_nlink) +
                            " names (hard links), by which SQLite would damage it: remove all but "
                            "one, or make symbolic links of them"};
  }
  return {};
}

}  // namespace

Result<std::string> path_of(std::string_view url) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!url.starts_with(kScheme)) return bad_url("an SQLite database is written sqlite:PATH");
  std::string_view path = url.substr(kScheme.size());
  if (const auto options = path.find('?'); options != path.npos) {
    return bad_url("an SQLite URL has no options: '" + std::string(path.substr(options)) + "'");
  }
  if (path.starts_with("//")) {
    path.remove_prefix(2);
    if (!path.starts_with('/')) {
      return bad_url("an SQLite database is a local file: write sqlite:PATH or sqlite:///PATH");
    }
  }
  if (path == ":memory:") return bad_url("sqlite::memory: is forgotten at once: use memory:");
  const std::string name = fs::path(path).filename().string();
  if (name.empty() || name == "." || name == "..") return bad_url("sqlite: names no file");
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(path.begin(), path.end(), is_control)) {
    return bad_url("the path of an SQLite database has control characters");
  }
  std::error_code failed;
  // Absolute, so that it means the same file after a chdir, and is never taken for a URI.
  const fs::path absolute = fs::absolute(fs::path(path), failed);
  if (failed) return bad_url("no such place: " + std::string(path));
  // By the file system and not by the text: behind a symbolic link, .. is not where it was reached
  // from. One that may not be looked at stays as it is, for the kernel to resolve.
  const fs::path directory = fs::weakly_canonical(absolute.parent_path(), failed);
  return failed ? absolute.string() : (directory / name).string();
}

std::string without_links(const std::string& path) {
  std::error_code failed;
  const fs::path file = fs::canonical(path, failed);
  return failed ? path : file.string();
}

std::optional<std::string_view> network_filesystem(std::uint64_t type) {
  const auto* const found = std::find_if(kNetworkFilesystems.begin(), kNetworkFilesystems.end(),
                                         [&](const auto& known) { return known.first == type; });
  if (found == kNetworkFilesystems.end()) return std::nullopt;
  return found->second;
}

Result<void> check_directory(const std::string& path) {
  const fs::path directory = fs::path(path).parent_path();
  struct stat found {};
  if (::stat(directory.c_str(), &found) == 0) return {};
  if (errno != ENOENT) return explain(SQLITE_CANTOPEN, directory.string(), {}, errno);
  return Error{.code = Code::bad_store,
               .message = "the directory " + directory.string() +
                          " does not exist: make it, or name another file"};
}

Result<void> prepare_file(const std::string& path, std::optional<std::uint64_t> type) {
  const fs::path directory = fs::path(path).parent_path();
  if (auto there = check_directory(path); !there) return there;
  if (!type) {
    struct statfs system {};
    // The file may be a mount of its own.
    if (::statfs(path.c_str(), &system) != 0 && ::statfs(directory.c_str(), &system) != 0) {
      return explain(SQLITE_CANTOPEN, path, {}, errno);
    }
    type = static_cast<std::uint64_t>(system.f_type) & 0xFFFFFFFF;
  }
  if (const auto network = network_filesystem(*type)) {
    return Error{.code = Code::bad_store,
                 .message = path + " is on " + std::string(*network) +
                            ", which may be shared with other machines: use a local disk, or "
                            "another store such as postgres:"};
  }
  if (auto trusted = check_entry(path); !trusted) return trusted;
  // Exclusive, because closing a descriptor of a file that is open already would drop its locks.
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EEXIST) return {};
    return explain(SQLITE_CANTOPEN, path, {}, errno);
  }
  ::fchmod(fd, 0600);
  ::close(fd);
  return sync_directory(directory);
}

}  // namespace baton::store::sqlite
