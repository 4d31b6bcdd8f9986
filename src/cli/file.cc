#include "cli/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

namespace baton::cli {
namespace {

Error cannot_read(const std::filesystem::path& path, const std::string& why) {
  return {.code = Code::bad_request, .message = "cannot read " + path.string() + ": " + why};
}

Error too_long(const std::filesystem::path& path, std::size_t limit) {
  return cannot_read(path, "it has more than " + std::to_string(limit) + " bytes");
}

// Why somebody else may have written it; empty if nobody can.
std::string why_not_own(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "it is not a regular file";
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return "it belongs to another user (uid " + std::to_string(file.st_uid) + ")";
  }
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "its group or others may write it";
  return {};
}

// A file that we have open, under its name in /dev/fd or /proc.
bool is_of_our_own(const std::filesystem::path& path) {
  const std::string& name = path.native();
  return name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/") || name == "/dev/stdin";
}

struct Descriptor {
  int file;
  ~Descriptor() { close(file); }
};

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  std::ifstream file;
  if (path != "-") {
    std::error_code none;
    const auto kind = std::filesystem::status(path, none).type();
    if (kind == std::filesystem::file_type::directory) {
      return cannot_read(path, "it is a directory");
    }
    // To open a named pipe that nobody writes waits for ever. What a shell substitutes, as in
    // <(generate), has its writer.
    if (kind == std::filesystem::file_type::fifo && !is_of_our_own(path)) {
      return cannot_read(path, "it is a named pipe; give - and redirect it");
    }
    errno = 0;
    file.open(path, std::ios::binary);
    if (!file) return cannot_read(path, std::strerror(errno));
  }
  std::istream& stream = path == "-" ? std::cin : file;
  // One byte more than allowed tells a file that is too long from one that just fits.
  std::string text(limit + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return cannot_read(path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > limit) return too_long(path, limit);
  return text;
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
  if (const std::string why = why_not_own(found); !why.empty()) return cannot_read(path, why);
  std::string text(limit + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = read(file.file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > limit) return too_long(path, limit);
  text.resize(size);
  return std::optional(std::move(text));
}

}  // namespace baton::cli
