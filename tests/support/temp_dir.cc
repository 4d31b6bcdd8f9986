#include "support/temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace baton::test {
namespace {

std::filesystem::path parent_directory() {
  const char* chosen = std::getenv("BATON_TEST_TMP");
  return chosen != nullptr && *chosen != '\0' ? std::filesystem::path(chosen)
                                              : std::filesystem::temp_directory_path();
}

}  // namespace

TempDir::TempDir(std::string_view prefix) {
  std::string name = parent_directory() / (std::string(prefix) + ".XXXXXX");
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
