// `baton elect` on PostgreSQL: with leases in tables, and with the server's own advisory locks.

#include <optional>

#include "integration/cli/elect_support.h"
#include "support/frozen.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class PostgresElect : public ElectTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<PostgresServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void use(const std::string& scheme, const std::string& options = "") {
    database_ = "elect_" + std::to_string(++databases_);
    server_->sql("CREATE DATABASE " + database_);
    const std::string url = server_->url(database_);
    env_["BATON_STORE"] = scheme + url.substr(url.find(':')) + options;
    ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  }

  // Session-level advisory locks of this database that are held, or only waited for.
  std::string advisory_locks(const std::string& key, bool granted) const {
    return server_->sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = " +
                            std::string(granted ? "true" : "false") +
                            " AND ((classid::bigint << 32) | objid::bigint) = " + key +
                            " AND database = (SELECT oid FROM pg_database WHERE datname = '" +
                            database_ + "')",
                        database_);
  }

  static inline std::unique_ptr<PostgresServer> server_;
  static inline int databases_ = 0;
  std::string database_;
};

class Postgres : public PostgresElect {
  void SetUp() override { use("postgres"); }
};
class Advisory : public PostgresElect {
  void SetUp() override { use("postgres-advisory"); }
};

// The keys of the design, for the outbox and for the views.
constexpr const char* kOutbox = "4856221667890123456";
constexpr const char* kViews = "4856221667890123457";

class NumericKey : public PostgresElect {
 protected:
  void SetUp() override { use("postgres-advisory", "?key=" + std::string(kOutbox)); }
  std::string other_url() const {
    std::string url = env_.at("BATON_STORE");
    return url.replace(url.find(kOutbox), std::string(kOutbox).size(), kViews);
  }
};

TEST_F(Postgres, two_replicas_fail_over_when_the_leader_is_killed) {
  auto a = stand("a", kSay, {"--ttl", "1s"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--ttl", "1s"});
  EXPECT_TRUE(waiting(1));
  a->kill(SIGKILL);
  EXPECT_TRUE(leads(*b)) << b->err();
}

TEST_F(Postgres, resign_and_transfer_hand_over) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  auto c = stand("c", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(2));
  const auto moved = baton({"leader", "transfer", "outbox", "c"});
  EXPECT_EQ(moved.status.code, 0) << moved.err;
  EXPECT_TRUE(leads(*c)) << c->err();
  EXPECT_EQ(b->out(), "");
  EXPECT_TRUE(waiting(2));
  EXPECT_EQ(baton({"leader", "resign", "outbox"}).status.code, 0);
  EXPECT_TRUE(leads(*b)) << b->err();
}

TEST_F(Postgres, a_graceful_shutdown_hands_over_at_once) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  a->kill(SIGTERM);
  ends(*a, 0);
  EXPECT_TRUE(leads(*b)) << b->err();
}

TEST_F(Advisory, a_follower_leads_as_soon_as_the_leader_is_killed_whatever_the_ttl) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  a->kill(SIGKILL);
  EXPECT_TRUE(leads(*b)) << b->err();
}

TEST_F(Advisory, a_paused_leader_cannot_write_over_its_successor) {
  WorkTable table(dir_ / "work.db");
  auto a = writer("a", "2s");
  ASSERT_TRUE(a->wait_for_out("writes ")) << a->err();
  auto b = writer("b", "2s");
  EXPECT_TRUE(waiting(1));
  // Its watcher stands still too; else that would end the work.
  const pid_t watcher = child_of(a->pid());
  ASSERT_GT(watcher, 0);
  a->kill(SIGSTOP);
  std::optional<Frozen> still(std::in_place, watcher);
  ASSERT_TRUE(*still);
  ASSERT_TRUE(b->wait_for_out("writes ")) << b->err();
  EXPECT_TRUE(a->wait_for_out("refused ")) << a->out();
  still.reset();
  a->kill(SIGCONT);
  EXPECT_TRUE(a->wait_for_err("no longer leading outbox")) << a->err();
  EXPECT_EQ(table.late_rows(), 0);
}

TEST_F(Advisory, resign_hands_over_and_a_transfer_says_that_it_cannot) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  refuses({"leader", "transfer", "outbox", "b"}, 1, "unsupported", "resign instead");
  const auto resigned = baton({"leader", "resign", "outbox"});
  EXPECT_EQ(resigned.status.code, 0) << resigned.err;
  EXPECT_TRUE(leads(*b)) << b->err();
}

TEST_F(NumericKey, leaders_share_the_key_with_programs_that_do_not_know_baton) {
  auto a = stand("a");
  ASSERT_TRUE(leads(*a)) << a->err();
  EXPECT_EQ(server_->sql("SELECT pg_try_advisory_lock(" + std::string(kOutbox) + ")", database_),
            "f");
  EXPECT_EQ(advisory_locks(kOutbox, true), "1");
}

TEST_F(NumericKey, the_lock_lasts_as_long_as_the_session) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a)) << a->err();
  a->kill(SIGKILL);
  ASSERT_TRUE(a->wait());
  EXPECT_TRUE(poll_until([&] { return advisory_locks(kOutbox, true) == "0"; }));
  auto restarted = stand("a", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(leads(*restarted)) << restarted->err();
}

TEST_F(NumericKey, a_follower_waits_for_a_leader_that_does_not_know_baton) {
  Process psql({.argv = {"psql", "-X", "-q", server_->url(database_)}});
  psql.write("SELECT pg_advisory_lock(" + std::string(kOutbox) + ");\n");
  ASSERT_TRUE(poll_until([&] { return advisory_locks(kOutbox, true) == "1"; })) << psql.err();
  auto a = stand("a");
  ASSERT_TRUE(poll_until([&] { return advisory_locks(kOutbox, false) == "1"; })) << a->err();
  EXPECT_NE(shown().find("a session of its own"), std::string::npos) << shown();
  refuses({"leader", "resign", "outbox"}, 1, "unsupported", "cannot be asked");
  EXPECT_EQ(a->out(), "");
  psql.close_stdin();
  EXPECT_TRUE(leads(*a)) << a->err();
}

TEST_F(NumericKey, different_keys_have_different_leaders) {
  auto outbox = stand("a");
  ASSERT_TRUE(leads(*outbox)) << outbox->err();
  auto views = stand("b", kSay, {"--store", other_url()}, "views");
  EXPECT_TRUE(leads(*views)) << views->err();
}

}  // namespace
}  // namespace baton::test
