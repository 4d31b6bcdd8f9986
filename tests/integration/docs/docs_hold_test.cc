// The programs of docs/hold.md, as they are printed.

#include <fstream>

#include "integration/cli/cli_support.h"
#include "integration/docs/docs_page.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

class DocsHold : public CliTest {
 protected:
  // What the page says to do before any of its programs.
  DocsHold() {
    const auto done = baton({"fence", "install", "--database", database_.url()});
    EXPECT_TRUE(done.status.success()) << done.err;
    data_.sql("CREATE TABLE monthly_report (month text PRIMARY KEY)");
    const auto transactions = blocks(text_, "sql");
    EXPECT_EQ(transactions.size(), 1U);
    std::ofstream(dir_ / "report.sql") << transactions.at(0);
  }

  // The program of that language under that name, run by these words.
  [[nodiscard]] Finished report(const std::string& language, const std::string& file,
                                Words words) const {
    const auto programs = blocks(text_, language);
    EXPECT_EQ(programs.size(), 1U) << language;
    std::ofstream(dir_ / file) << programs.at(0);
    auto made = options({});
    words.push_back(file);
    made.argv = std::move(words);
    made.env["PATH"] =
        std::filesystem::path(BATON_PROGRAM).parent_path().string() + ":" + std::getenv("PATH");
    made.env["DATABASE"] = database_.url();
    made.env["GOCACHE"] = BATON_GO_CACHE;  // of the build: else the first run compiles for long
    made.env["GOTOOLCHAIN"] = "local";
    made.env["GOFLAGS"] = "-mod=mod";
    return run(made, 4 * patience);
  }

  // Writes; and does not once somebody newer has.
  void works(const std::string& language, const std::string& file, const Words& words) {
    const Finished done = report(language, file, words);
    EXPECT_TRUE(done.status.success()) << done.err;
    EXPECT_NE(done.out.find("{\"event\":\"released\",\"reason\":\"release\"}"), std::string::npos)
        << done.out << done.err;
    EXPECT_EQ(data_.sql("SELECT string_agg(month, ' ') FROM monthly_report"), "2026-11");
    data_.sql(
        "DELETE FROM monthly_report; SELECT public.baton_fence('DEFAULT:report:2026-11'::text, "
        "'X'::text, 4000000000000000000)");
    const Finished late = report(language, file, words);
    EXPECT_FALSE(late.status.success()) << late.out;
    EXPECT_NE(late.err.find("fenced"), std::string::npos) << late.err;
    EXPECT_EQ(data_.sql("SELECT count(*) FROM monthly_report"), "0");
    EXPECT_EQ(baton({"run", "report/2026-11", "--wait", "30s", "--", "true"}).status.code, 0)
        << "it ended without a word, and the lock with it";
  }

  static bool is_here(const std::string& program) {
    return run({.argv = {"sh", "-c", "command -v " + program}}).status.success();
  }

  const std::string text_ = page("hold.md");
  Database database_;
  Session data_{database_.url()};
};

TEST_F(DocsHold, the_program_in_bash_works) { works("bash", "report.sh", {"bash"}); }

TEST_F(DocsHold, the_program_in_python_works) { works("python", "report.py", {"python3"}); }

TEST_F(DocsHold, the_program_in_node_works) {
  if (!is_here("node")) GTEST_SKIP() << "no node on this machine: 150 MB for a page's example";
  works("javascript", "report.js", {"node"});
}

TEST_F(DocsHold, the_program_in_go_works) {
  if (!is_here("go")) GTEST_SKIP() << "no go on this machine: 400 MB for a page's example";
  works("go", "report.go", {"go", "run"});
}

}  // namespace
}  // namespace baton::test
