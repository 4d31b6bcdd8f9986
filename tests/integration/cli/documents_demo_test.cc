// `./dev demo` where there is no terminal, as in a pipeline.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>

#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Demo {
 public:
  bool says(const std::string& text) { return process_.wait_for_out(text, 200s); }
  // Of its directory, the only one there.
  [[nodiscard]] fs::path data() const {
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      return entry.path() / "documents-data";
    }
    return {};
  }
  [[nodiscard]] bool write(const std::string& file, const char* sql) const {
    sqlite3* database = nullptr;
    sqlite3_open_v2((data() / file).c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
    sqlite3_busy_timeout(database, 30'000);
    const bool done = sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
    const int changed = sqlite3_changes(database);
    sqlite3_close(database);
    return done && changed > 0;
  }
  [[nodiscard]] std::vector<pid_t> services() const {
    std::vector<pid_t> pids;
    for (const auto& entry : fs::directory_iterator(data() / "run")) {
      std::ifstream file(entry.path());
      if (pid_t pid = 0; file >> pid) pids.push_back(pid);
    }
    return pids;
  }
  void interrupt() { process_.kill(SIGINT); }
  std::optional<ExitStatus> ends() { return process_.wait(300s); }
  [[nodiscard]] std::string out() const { return process_.out() + process_.err(); }
  [[nodiscard]] bool leaves_nothing() const { return fs::is_empty(dir_.path()); }

 private:
  TempDir dir_{"documents-demo"};
  Process process_{{.argv = {BATON_DOCUMENTS_DEMO, "--documents", "60"},
                    .env = {{"TMPDIR", dir_.path().string()}}}};
};

TEST(DocumentsDemoWithoutATerminal, leaves_no_process_and_no_file_when_it_is_interrupted) {
  Demo demo;
  ASSERT_TRUE(demo.says("is paused (SIGSTOP)")) << demo.out();
  const auto services = demo.services();
  EXPECT_GE(services.size(), 5U);
  demo.interrupt();
  const auto status = demo.ends();
  ASSERT_TRUE(status) << demo.out();
  EXPECT_EQ(status->signal, SIGINT) << demo.out();
  for (const pid_t pid : services) EXPECT_NE(::kill(pid, 0), 0) << pid << " still runs";
  EXPECT_TRUE(demo.leaves_nothing());
}

TEST(DocumentsDemoWithoutATerminal, passes_its_checks_and_fails_if_a_message_is_doubled) {
  Demo demo;
  Demo spoilt;  // at the same time, for each takes 20 s
  ASSERT_TRUE(spoilt.says("is paused (SIGSTOP)")) << spoilt.out();
  ASSERT_TRUE(spoilt.write(
      "notification.db",
      "INSERT INTO notification_history (event_id, channel, user_id, event_type, document_id,"
      " idempotency_key, subject, sent_at) SELECT event_id, 'fax', user_id, event_type,"
      " document_id, idempotency_key || ' again', subject, sent_at FROM notification_history"
      " LIMIT 1"));

  const auto well = demo.ends();
  ASSERT_TRUE(well) << demo.out();
  EXPECT_EQ(well->code, 0) << demo.out();
  const std::string out = demo.out();
  for (const char* line :
       {R"(validation-\d, which publishes, is killed \(SIGKILL\))",
        R"(validation-\d publishes now: the lock of (validation-\d|its killed process) ran out)",
        R"(audit-\d, which was elected to seal the log, is killed)", R"(60 of 60 submitted)",
        R"(validation-\d runs again: 'documents up' started process \d+)",
        R"(  ok   60 documents in the right state: 51 ENRICHED, 6 REJECTED, 3 FAILED)",
        R"(  ok   the dead letters are exactly the 3 poison documents)",
        R"(  ok   the audit log has each of the \d+ events once, sealed)",
        R"(  ok   each of the \d+ notifications was sent once)", R"(  ok   documents verify: )",
        R"(\nAll checks passed.\n)"}) {
    EXPECT_TRUE(std::regex_search(out, std::regex(line))) << line << "\n" << out;
  }
  EXPECT_EQ(out.find('\033'), std::string::npos) << "that is for terminals";
  EXPECT_NE(out.find("  cd " + demo.data().parent_path().string() + "\n"), std::string::npos)
      << "where its files are: " << out;
  EXPECT_TRUE(fs::exists(demo.data() / "audit.db"));

  const auto badly = spoilt.ends();
  ASSERT_TRUE(badly) << spoilt.out();
  EXPECT_EQ(badly->code, 1) << spoilt.out();
  for (const char* line : {R"(  FAIL each of the \d+ notifications was sent once)",
                           R"(  FAIL documents verify: )", R"(\nA check failed.\n)"}) {
    EXPECT_TRUE(std::regex_search(spoilt.out(), std::regex(line))) << line << "\n" << spoilt.out();
  }
}

TEST(DocumentsDemoWithoutATerminal, a_wrong_command_line_is_refused) {
  const Finished finished = run({.argv = {BATON_DOCUMENTS_DEMO, "--documents", "many"}}, patience);
  EXPECT_EQ(finished.status.code, 2);
  EXPECT_NE(finished.out.find("usage: "), std::string::npos) << finished.out;
}

}  // namespace
}  // namespace baton::test
