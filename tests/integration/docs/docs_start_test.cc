// docs/start.md and docs/upgrading.md, done by somebody who types what they print.

#include <regex>

#include "integration/cli/cli_support.h"
#include "integration/docs/docs_page.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

class DocsStart : public CliTest {
 protected:
  // With a database of our own in the place of the reader's.
  [[nodiscard]] Finished type(const std::string& commands) const {
    const std::regex theirs("postgres://app@db/shop");
    auto made = options({});
    made.argv = {"bash", "-c", std::regex_replace(commands, theirs, database_.url())};
    made.env["PATH"] =
        std::filesystem::path(BATON_PROGRAM).parent_path().string() + ":" + std::getenv("PATH");
    made.env["DATABASE"] = database_.url();
    made.env["BATON_STORE"] = database_.url();
    return run(made, 4 * patience);
  }
  // The path also looks at what it leaves in the database.
  void follow(const std::string& path) const {
    const auto done = type("bash " BATON_SOURCE_DIR "/scripts/follow_start.sh " BATON_SOURCE_DIR
                           "/docs/start.md " +
                           path);
    EXPECT_TRUE(done.status.success()) << done.status.describe() << done.out << done.err;
  }

  Database database_;
};

TEST_F(DocsStart, has_no_commands_but_those_that_are_done_here) {
  EXPECT_EQ(blocks(page("start.md"), "bash").size(), 7U);
}

TEST_F(DocsStart, a_cron_job_runs_once) { follow("cron"); }

TEST_F(DocsStart, of_two_daemons_one_works_and_the_other_one_takes_over) { follow("daemon"); }

TEST_F(DocsStart, what_it_prints_of_the_program_in_cpp_is_in_the_example) {
  const std::string example = page("../examples/report/main.cc");
  const auto printed = blocks(page("start.md"), "cpp");
  ASSERT_EQ(printed.size(), 2U);
  for (const auto& part : printed) EXPECT_NE(example.find(part), std::string::npos) << part;
}

TEST_F(DocsStart, a_program_in_another_language_writes_behind_the_fence) { follow("other"); }

TEST_F(DocsStart, of_the_upgrade_page_both_ways_leave_a_schema_to_lock_in) {
  const auto commands = blocks(page("upgrading.md"), "bash");
  ASSERT_EQ(commands.size(), 2U);
  for (const auto& way :
       {commands[1], commands[0]}) {  // the doctor may find fault with the machine
    const auto done = type(way);
    EXPECT_NE(done.out.find("version 1"), std::string::npos) << done.out << done.err;
    EXPECT_EQ(type("baton run job -- true").status.code, 0) << done.err;
  }
}

}  // namespace
}  // namespace baton::test
