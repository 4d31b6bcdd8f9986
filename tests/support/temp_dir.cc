#include "support/temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <stdlib.h>
#include <unistd.h>

namespace baton::test {
namespace {

std::filesystem::path parent_directory() {
  const char* chosen = std::getenv("BATON_TEST_TMP");
  return chosen != nullptr && *chosen != '\0' ? std::filesystem::path(chosen)
                                              : std::filesystem::temp_directory_path();
}

}  // namespace

TempDir::TempDir(std::string_view prefix) : TempDir(parent_directory(), prefix) {}

TempDir TempDir::in_memory(std::string_view prefix) {
  const std::filesystem::path memory = "/dev/shm";
  const bool writable = ::access(memory.c_str(), W_OK) == 0;
  return {writable ? memory : parent_directory(), prefix};
}

TempDir::TempDir(const std::filesystem::path& parent, std::string_view prefix) {
  std::string name = parent / (std::string(prefix) + ".XXXXXX");
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace baton::test
