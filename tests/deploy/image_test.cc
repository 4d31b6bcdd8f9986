// deploy/image_root.sh, which the Containerfile calls: what it puts together is all that a program
// needs, and nothing else.

#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "deploy/deploy_files.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;

class Image : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made = run({.argv = {BATON_DEPLOY "/image_root.sh", root_.path(), BATON_PROGRAM}});
    ASSERT_TRUE(made.status.success()) << made.err;
  }
  // Runs a program of the image, which sees nothing of this machine's files. /proc is there, as in
  // a container.
  [[nodiscard]] Finished inside(std::vector<std::string> argv) const {
    std::vector<std::string> enter = {"unshare", "--pid", "--fork", "--mount-proc",
                                      "--root=" + root_.path().string()};
    if (geteuid() != 0) enter.emplace_back("--map-root-user");
    argv.insert(argv.begin(), enter.begin(), enter.end());
    return run({.argv = argv});
  }
  TempDir root_{"image"};
};

TEST_F(Image, has_all_that_the_program_needs) {
  const auto version = inside({"/usr/bin/baton", "--version"});
  EXPECT_TRUE(version.status.success()) << version.err;
  // A lock, a command, time zones and certificates.
  const auto ran = inside({"/usr/bin/baton", "--store", "sqlite:/tmp/locks.db", "run", "report",
                           "--", "/usr/bin/baton", "--version"});
  EXPECT_TRUE(ran.status.success()) << ran.err;
  EXPECT_EQ(ran.out, version.out);
  EXPECT_TRUE(fs::exists(root_ / "usr/share/zoneinfo/Europe/Berlin"));
  EXPECT_GT(fs::file_size(root_ / "etc/ssl/certs/ca-certificates.crt"), 10'000U);
}

TEST_F(Image, has_no_other_program_and_no_shell) {
  std::set<std::string> programs;
  for (const auto& entry : fs::recursive_directory_iterator(root_.path())) {
    const bool library = entry.path().filename().string().find(".so") != std::string::npos;
    if (!entry.is_regular_file() || library) continue;
    const auto mode = entry.status().permissions();
    if ((mode & fs::perms::others_exec) != fs::perms::none) programs.insert(entry.path());
  }
  EXPECT_EQ(programs, std::set<std::string>{(root_ / "usr/bin/baton").string()});
}

TEST_F(Image, is_not_made_without_a_library_that_is_missing) {
  fs::remove_all(root_ / "lib");
  fs::remove_all(root_ / "usr/lib");
  EXPECT_FALSE(inside({"/usr/bin/baton", "--version"}).status.success());
}

TEST(ImageFiles, every_image_runs_as_nobody_in_particular) {
  const std::string text = deploy_text("Containerfile");
  std::size_t images = 0;
  for (auto at = text.find("\nENTRYPOINT"); at != std::string::npos;
       at = text.find("\nENTRYPOINT", at + 1)) {
    const auto from = text.rfind("\nFROM ", at);
    EXPECT_NE(text.substr(from, at - from).find("\nUSER 10001:10001"), std::string::npos);
    ++images;
  }
  EXPECT_EQ(images, 4U);
}

}  // namespace
}  // namespace baton::test
