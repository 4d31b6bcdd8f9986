#pragma once

#include <filesystem>
#include <string_view>

namespace baton::test {

// A new empty directory, private to this user, removed with all its content at the end of the
// scope. Lives below $BATON_TEST_TMP if that is set, else below the system's temporary directory.
class TempDir {
 public:
  explicit TempDir(std::string_view prefix = "baton");

  // In memory, where there is such a place: for tests that the disk must not slow down.
  static TempDir in_memory(std::string_view prefix);

  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  TempDir(const std::filesystem::path& parent, std::string_view prefix);

  std::filesystem::path path_;
};

}  // namespace baton::test
