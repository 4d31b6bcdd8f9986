#include "cli/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace baton::cli {
namespace {

Error cannot_read(const std::filesystem::path& path, const std::string& why) {
  return {.code = Code::bad_request, .message = "cannot read " + path.string() + ": " + why};
}

Error too_long(const std::filesystem::path& path, std::size_t limit) {
  return cannot_read(path, "it has more than " + std::to_string(limit) + " bytes");
}

// A file that we have open, under its name in /dev/fd or /proc.
bool is_of_our_own(const std::filesystem::path& path) {
  const std::string& name = path.native();
  return name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/") || name == "/dev/stdin";
}

struct Descriptor {
  int file;
  ~Descriptor() {
    if (file >= 0) close(file);
  }
};

Result<std::string> read_all(const std::filesystem::path& path, int file, std::size_t limit) {
  // One byte more than allowed tells a file that is too long from one that just fits.
  std::string text(limit + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > limit) return too_long(path, limit);
  text.resize(size);
  return text;
}

}  // namespace

std::string written_by_others(const struct stat& file) {
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return "it belongs to another user (uid " + std::to_string(file.st_uid) + ")";
  }
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "its group or others may write it";
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit,
                              const FileCheck& check) {
  if (path == "-") return read_all(path, STDIN_FILENO, limit);
  // Not blocking: to open a named pipe that nobody writes would wait for ever.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  struct stat found {};
  if (file.file < 0 || fstat(file.file, &found) != 0) {
    return cannot_read(path, std::strerror(errno));
  }
  if (S_ISDIR(found.st_mode)) return cannot_read(path, "it is a directory");
  // What a shell substitutes, as in <(generate), has its writer, and is waited for.
  if (S_ISFIFO(found.st_mode) && !is_of_our_own(path)) {
    return cannot_read(path, "it is a named pipe; give - and redirect it");
  }
  fcntl(file.file, F_SETFL, 0);
  if (check) {
    if (auto fine = check(found); !fine) return fine.error();
  }
  return read_all(path, file.file, limit);
}

Result<std::optional<std::string>> read_own_file(const std::filesystem::path& path,
                                                 std::size_t limit) {
  // Not blocking: it may be a FIFO.
  const int opened = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (opened < 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return cannot_read(path, errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
  }
  const Descriptor file{opened};
  struct stat found {};
  if (fstat(file.file, &found) != 0) return cannot_read(path, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return cannot_read(path, "it is not a regular file");
  if (const std::string why = written_by_others(found); !why.empty()) return cannot_read(path, why);
  auto text = read_all(path, file.file, limit);
  if (!text) return text.error();
  return std::optional(std::move(*text));
}

}  // namespace baton::cli
