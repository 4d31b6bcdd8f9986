#include "integration/cli/cli_any_store.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

struct AdvisoryPlace {
  PostgresServer server;
  int databases = 0;
  static std::string advisory(const std::string& url) {
    return "postgres-advisory" + url.substr(url.find(':'));
  }
  std::string database() const { return "cli_" + std::to_string(databases); }
  std::string fresh() {
    ++databases;
    server.sql("CREATE DATABASE " + database());
    return advisory(server.url(database()));
  }
  static std::string absent() {
    return "postgres-advisory://me:secret@127.0.0.1:" + std::to_string(free_port()) + "/none";
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PostgresAdvisory, CliAnyStore, AdvisoryPlace);

using CliPostgresAdvisory = CliAnyStore<AdvisoryPlace>;

// The server frees it when the session ends, long before the TTL.
TEST_F(CliPostgresAdvisory, a_killed_runner_is_followed_at_once) {
  auto first = hold("job", "echo ready; exec sleep 600", {"--ttl", "10m"});
  auto second = start({"run", "job", "--wait", "1m", "--", "echo", "mine"});
  await_waiter();
  first->kill(SIGKILL);
  ends(*second, 0);
  EXPECT_EQ(second->out(), "mine\n");
}

TEST_F(CliPostgresAdvisory, what_the_store_cannot_do_is_said) {
  refuses({"run", "job", "--mode", "update", "--", "true"}, 1, "unsupported", "no mode");
}

TEST_F(CliPostgresAdvisory, a_malformed_url_is_refused_without_repeating_it) {
  for (const auto* rest : {"u:s3cret@h:port/x", "u:s3cret@h/x?nonsense=1", "u:s3c@ret@h/x",
                           "u:s3c/ret@h/x", "u:s3cret@[::1/x"}) {
    const Words words{"lock", "find", "--store", std::string("postgres-advisory://") + rest};
    refuses(words, 2, "bad_url", "");
    const auto told = baton(words).err;
    EXPECT_EQ(told.find("s3c"), std::string::npos) << told;
  }
}

TEST_F(CliPostgresAdvisory, the_doctor_says_what_is_wrong_and_exits_with_1) {
  const auto well = baton({"store", "doctor", "--ttl", "1h"});
  EXPECT_EQ(well.status.code, 0) << well.out << well.err;
  place().server.sql("ALTER DATABASE " + place().database() + " SET synchronous_commit = off");
  const auto ill = baton({"store", "doctor", "--ttl", "1h"});
  EXPECT_EQ(ill.status.code, 1);
  EXPECT_NE(ill.out.find("warning: synchronous_commit is off"), std::string::npos) << ill.out;
  EXPECT_NE(ill.out.find("  consequence: "), std::string::npos) << ill.out;
  EXPECT_NE(ill.out.find("  remedy: "), std::string::npos) << ill.out;
  const auto json = baton({"store", "doctor", "--ttl", "1h", "--json"});
  EXPECT_EQ(json.status.code, 1);
  EXPECT_NE(json.out.find(R"("code":"commit-not-durable","severity":"warning")"), std::string::npos)
      << json.out;
  refuses({"store", "doctor", "--ttl", "soon"}, 2, "bad_request", "--ttl");
}

}  // namespace
}  // namespace baton::test
