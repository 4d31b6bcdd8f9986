// baton store migrate, looked at before and done by hand; and what an upgrade keeps.

#include <fstream>

#include "integration/cli/cli_support.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

class CliMigrate : public CliTest {
 protected:
  CliMigrate() { env_["BATON_STORE"] = database_.url(); }

  // As an administrator does it, who has psql and the file.
  void psql(const std::filesystem::path& script) const {
    const auto done = run(
        {.argv = {"psql", database_.url(), "-q", "-v", "ON_ERROR_STOP=1", "-f", script.string()}});
    EXPECT_TRUE(done.status.success()) << done.err;
  }
  std::string printed_sql() const {
    const auto printed = baton({"store", "migrate", "--sql"});
    EXPECT_TRUE(printed.status.success()) << printed.err;
    std::ofstream(dir_ / "migrate.sql") << printed.out;
    return printed.out;
  }
  std::string dry_run() const {
    const auto told = baton({"store", "migrate", "--dry-run"});
    EXPECT_TRUE(told.status.success()) << told.err;
    return told.out;
  }
  void all_is_there() {
    EXPECT_EQ(dry_run(), kNothing);
    EXPECT_EQ(printed_sql(), std::string("-- ") + kNothing);
    EXPECT_EQ(baton({"store", "migrate"}).out, "the schema already has version 1\n");
    const auto doctor = baton({"store", "doctor", "--json"});
    EXPECT_EQ(doctor.out.find("\"code\":\"schema\""), std::string::npos) << doctor.out;
    const auto ran = baton({"run", "job", "--", "true"});
    EXPECT_EQ(ran.status.code, 0) << ran.err;
  }
  // What a program of the version before would have left: a note, and tokens up to 1000.
  void leave_edition_1() {
    psql(BATON_SOURCE_DIR "/tests/integration/postgres/edition_1.sql");
    data_.sql(
        "INSERT INTO baton.lock (key, note_ordinal, note_text)"
        " VALUES ('DEFAULT:job', 7, 'up to row 7'); SELECT setval('baton.counter', 1000)");
  }
  void keeps_what_was_there() const {
    const auto shown = baton({"lock", "show", "job"}).out;
    EXPECT_NE(shown.find("note 7: up to row 7"), std::string::npos) << shown;
    const auto token = baton({"run", "job", "--", "sh", "-c", "echo $BATON_TOKEN"});
    EXPECT_GT(std::atoi(token.out.c_str()), 1000) << token.err;
  }

  static constexpr const char* kNothing =
      "the schema already has version 1: nothing is to be done\n";
  Database database_;
  Session data_{database_.url()};
};

TEST_F(CliMigrate, a_dry_run_says_what_would_be_done_and_does_nothing) {
  EXPECT_EQ(dry_run(), "would make the schema, version 1\n");
  EXPECT_EQ(baton({"store", "migrate", "--dry-run", "--json"}).out,
            "{\"from\":0,\"to\":1,\"functions_replaced\":true,\"dry_run\":true}\n");
  EXPECT_EQ(data_.sql("SELECT to_regnamespace('baton') IS NULL"), "t");
}

TEST_F(CliMigrate, the_printed_sql_makes_what_migrate_makes) {
  EXPECT_EQ(printed_sql().rfind("-- would make the schema, version 1\nBEGIN;\n", 0), 0U);
  EXPECT_EQ(data_.sql("SELECT to_regnamespace('baton') IS NULL"), "t") << "printed, not done";
  psql(dir_ / "migrate.sql");
  all_is_there();
}

TEST_F(CliMigrate, the_printed_sql_of_advisory_locks_makes_what_migrate_makes) {
  env_["BATON_STORE"] = "postgres-advisory" + database_.url().substr(database_.url().find(':'));
  printed_sql();
  psql(dir_ / "migrate.sql");
  all_is_there();
}

TEST_F(CliMigrate, of_a_schema_with_older_functions_keeps_notes_and_tokens) {
  leave_edition_1();
  const auto refused = baton({"run", "job", "--", "true"});
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_NE(refused.err.find("has old functions; run: baton store migrate"), std::string::npos)
      << refused.err;
  EXPECT_EQ(dry_run(),
            "would replace the functions of the schema by those of this baton; its "
            "tables already have version 1\n");
  EXPECT_EQ(baton({"store", "migrate"}).status.code, 0);
  keeps_what_was_there();
  all_is_there();
}

TEST_F(CliMigrate, by_hand_of_a_schema_with_older_functions_keeps_notes_and_tokens) {
  leave_edition_1();
  printed_sql();
  psql(dir_ / "migrate.sql");
  keeps_what_was_there();
  all_is_there();
}

TEST_F(CliMigrate, the_printed_sql_gives_up_if_the_schema_is_another_one_by_then) {
  leave_edition_1();
  printed_sql();
  data_.sql("UPDATE baton.meta SET version = 99");
  const auto late = run({.argv = {"psql", database_.url(), "-q", "-v", "ON_ERROR_STOP=1", "-f",
                                  (dir_ / "migrate.sql").string()}});
  EXPECT_FALSE(late.status.success());
  EXPECT_NE(late.err.find("no longer as it was"), std::string::npos) << late.err;
  EXPECT_EQ(data_.sql("SELECT version FROM baton.meta"), "99");
  EXPECT_EQ(baton({"store", "migrate", "--dry-run"}).status.code, 1) << "a newer one is refused";
}

TEST_F(CliMigrate, of_other_stores_takes_no_sql) {
  env_["BATON_STORE"] = store();
  EXPECT_EQ(dry_run(), "would make the schema, version 1\n");
  EXPECT_EQ(printed_sql(),
            "-- would make the schema, version 1, by 'baton store migrate': it takes no SQL\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "locks.db"));
  EXPECT_EQ(baton({"store", "migrate"}).status.code, 0);
  EXPECT_EQ(dry_run(), kNothing);
}

}  // namespace
}  // namespace baton::test
