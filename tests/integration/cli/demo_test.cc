// `./dev demo` where there is no terminal, as in a pipeline.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <csignal>
#include <filesystem>
#include <regex>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Demo {
 public:
  // Waits until the first work is written down.
  bool begins() {
    return process_.wait_for_out("3 workers started") && poll_until([&] {
             for (const auto& entry : fs::directory_iterator(dir_.path())) {
               ledger_ = entry.path() / "ledger.db";
             }
             return write("UPDATE done SET unit = unit") && changed_ > 0;
           });
  }
  bool write(const char* sql) {
    sqlite3* database = nullptr;
    sqlite3_open_v2(ledger_.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
    sqlite3_busy_timeout(database, 30'000);
    const bool done = sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
    changed_ = sqlite3_changes(database);
    sqlite3_close(database);
    return done;
  }
  int ends() {
    const auto status = process_.wait(300s);
    EXPECT_TRUE(status) << "it still runs: " << process_.out();
    return status ? status->code : -1;
  }
  [[nodiscard]] std::string out() const { return process_.out(); }
  [[nodiscard]] bool says(const std::string& line) const {
    return std::regex_search(out(), std::regex("(^|\n)" + line + "\n"));
  }
  void interrupt() { process_.kill(SIGINT); }
  [[nodiscard]] int signal_that_ended() {
    const auto status = process_.wait(300s);
    return status ? status->signal : 0;
  }
  [[nodiscard]] bool leaves_nothing() const { return fs::is_empty(dir_.path()); }

 private:
  TempDir dir_{"demo"};
  Process process_{{.argv = {BATON_DEMO}, .env = {{"TMPDIR", dir_.path().string()}}}};
  fs::path ledger_;
  int changed_ = 0;
};

TEST(DemoWithoutATerminal, leaves_nothing_behind_when_it_is_interrupted) {
  Demo demo;
  ASSERT_TRUE(demo.begins()) << demo.out();
  demo.interrupt();
  EXPECT_EQ(demo.signal_that_ended(), SIGINT) << demo.out();
  EXPECT_TRUE(demo.leaves_nothing());
}

TEST(DemoWithoutATerminal, says_who_holds_what_and_fails_if_a_check_does) {
  Demo demo;
  Demo spoilt;  // at the same time, for each takes 20 s
  ASSERT_TRUE(spoilt.begins()) << spoilt.out();
  ASSERT_TRUE(spoilt.write("INSERT INTO done SELECT * FROM done LIMIT 1"));

  EXPECT_EQ(demo.ends(), 0) << demo.out();
  const std::string stamp = R"( *\d+\.\d s  )";
  EXPECT_TRUE(demo.says(stamp + R"(unit/\d+ is held by worker-1 with token \d+)")) << demo.out();
  EXPECT_TRUE(demo.says(stamp + R"(unit/\d+ is held by worker-3 with token \d+)")) << demo.out();
  const std::string out = demo.out();
  std::smatch killed;
  ASSERT_TRUE(std::regex_search(
      out, killed, std::regex(R"(worker-1 is killed \(SIGKILL\) while it holds (unit/\d+) )")))
      << out;
  EXPECT_NE(killed.suffix().str().find(killed[1].str() + " is held by worker-"), std::string::npos)
      << "nobody followed: " << out;
  EXPECT_TRUE(demo.says("  ok   60 of 60 units of work are done: none was lost")) << demo.out();
  EXPECT_TRUE(demo.says("  ok   each was done exactly once"));
  EXPECT_TRUE(demo.says(R"(  ok   the stale write .* was refused by the fence)"));
  EXPECT_TRUE(demo.says("  ok   the tokens of each unit only ever grew"));
  EXPECT_TRUE(demo.out().ends_with("\nAll checks passed.\n")) << demo.out();
  EXPECT_EQ(demo.out().find('\033'), std::string::npos) << "that is for terminals";
  EXPECT_TRUE(demo.leaves_nothing());

  EXPECT_EQ(spoilt.ends(), 1) << spoilt.out();
  EXPECT_TRUE(spoilt.says("  FAIL each was done exactly once")) << spoilt.out();
  EXPECT_TRUE(spoilt.out().ends_with("\nA check failed.\n")) << spoilt.out();
}

}  // namespace
}  // namespace baton::test
