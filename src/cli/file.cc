#include "cli/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

namespace baton::cli {
namespace {

Error cannot_read(const std::filesystem::path& path, const std::string& why) {
  return {.code = Code::bad_request, .message = "cannot read " + path.string() + ": " + why};
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  std::ifstream file;
  if (path != "-") {
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) return cannot_read(path, "it is a directory");
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
  if (text.size() > limit) {
    return cannot_read(path, "it has more than " + std::to_string(limit) + " bytes");
  }
  return text;
}

}  // namespace baton::cli
