// What goes wrong around the store, or is left behind by others, and must not reach who asks.

#include <gtest/gtest.h>

#include "postgres_database.h"
#include "store/postgres/codec.h"
#include "store/postgres/sql_error.h"

namespace baton::test {
namespace {

using std::chrono::seconds;

class PostgresMishap : public ::testing::Test {
 protected:
  PostgresMishap() { database.migrate(); }
  Database database;
};

const std::string kKey = "DEFAULT:job:1";

// A sequence does not roll back, and a client of the version that was not to be may be about.
TEST_F(PostgresMishap,
       a_schema_change_that_was_rolled_back_lets_no_client_in_that_the_note_denies) {
  const auto store = database.store();
  Request schema = acquire(1, std::string(core::kSchemaKey));
  schema.change = {.ordinal = 7, .text = "{}"};
  ASSERT_EQ(ask(*store, schema).outcome, Outcome::granted);
  ASSERT_EQ(ask(*store, request(Verb::release, 1, schema.asks[0].key)).outcome, Outcome::done);
  Session session(database.url());
  const std::string version = "SELECT pg_sequence_last_value('baton.schema_version')";
  EXPECT_EQ(session.sql(version), "7") << "the short way is open again";
  for (const std::int64_t wanted : {0, 8}) {
    session.sql("BEGIN");
    session.sql("SELECT baton.write_note('BATON:schema', " + std::to_string(wanted) + ", '{}')");
    session.sql("ROLLBACK");
    Request denied = acquire(2, kKey);
    denied.schema_version = wanted;
    EXPECT_EQ(ask(*store, denied).outcome, Outcome::denied) << wanted;
    Request right = acquire(3, kKey);
    right.schema_version = 7;
    EXPECT_EQ(ask(*store, right).outcome, Outcome::granted);
    EXPECT_EQ(ask(*store, request(Verb::release, 3, kKey)).outcome, Outcome::done);
  }
  EXPECT_NE(session.sql(version), "7");
  EXPECT_EQ(session.sql("SELECT baton.sweep('', 100, NULL)"), "");
  EXPECT_EQ(session.sql(version), "7") << "whoever sweeps opens it again";
}

}  // namespace
}  // namespace baton::test
