// Each finding of `baton store doctor` on a real server that has it.

#include <gtest/gtest.h>

#include "baton/fence.h"
#include "integration/postgres/examine_support.h"
#include "integration/postgres/postgres_around.h"
#include "integration/postgres_advisory/postgres_advisory_database.h"
#include "store/postgres/examine.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

using Findings = std::vector<Finding>;

const Finding* find(const Findings& findings, const std::string& code) {
  for (const Finding& finding : findings) {
    if (finding.code == code) return &finding;
  }
  return nullptr;
}

Findings examine(const std::string& url, Millis ttl = 1h) {
  const auto admin = url.starts_with("postgres-advisory")
                         ? open_postgres_advisory_admin(url, soon()).value()
                         : open_postgres_admin(url, soon()).value();
  auto findings = admin->examine(ttl, soon());
  EXPECT_TRUE(findings) << findings.error().message;
  return findings ? *findings : Findings{};
}

// It is there, in words, with this severity.
void expect(const Findings& findings, const std::string& code, Severity severity) {
  const Finding* finding = find(findings, code);
  ASSERT_NE(finding, nullptr) << code;
  EXPECT_EQ(finding->severity, severity) << code;
  EXPECT_FALSE(finding->what.empty());
  EXPECT_FALSE(finding->consequence.empty());
  EXPECT_FALSE(finding->remedy.empty());
}

std::string listed(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.code + ": " + finding.what + "\n";
  return text;
}

TEST(PostgresExamine, a_good_server_gets_no_more_than_advice) {
  const AdvisoryDatabase database;
  database.migrate();
  for (const auto& url : {database.url(), advisory(database.url())}) {
    const Findings findings = examine(url);
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.severity, Severity::advice) << listed(findings);
    }
  }
}

TEST(PostgresExamine, a_missing_schema_is_found) {
  const Database database;
  expect(examine(database.url()), "schema", Severity::danger);
  const Findings findings = examine(advisory(database.url()));
  expect(findings, "schema", Severity::danger);
  EXPECT_NE(find(findings, "schema")->remedy.find("postgres-advisory://"), std::string::npos);
}

TEST(PostgresExamine, missing_rights_are_found) {
  const AdvisoryDatabase database;
  database.migrate();
  const Role role(database);
  for (const auto& url : {database.url_as(role.name()), advisory(database.url_as(role.name()))}) {
    const Findings findings = examine(url);
    expect(findings, "missing-rights", Severity::danger);
    EXPECT_NE(find(findings, "missing-rights")->what.find("USAGE on schema"), std::string::npos);
    Session(database.url()).sql(find(findings, "missing-rights")->remedy);
    EXPECT_EQ(find(examine(url), "missing-rights"), nullptr);
  }
}

TEST(PostgresExamine, objects_of_another_role_are_found) {
  const AdvisoryDatabase database;
  database.migrate();
  const Role role(database);
  const auto give = [&](const std::string& to) {
    Session(database.url())
        .sql("ALTER FUNCTION baton.micros OWNER TO " + to +
             "; ALTER TABLE baton_advisory.term OWNER TO " + to);
  };
  give(role.name());
  for (const auto& [url, object] : {std::pair(database.url(), "function baton.micros"),
                                    {advisory(database.url()), "table baton_advisory.term"}}) {
    const Findings findings = examine(url);
    expect(findings, "foreign-owner", Severity::danger);
    const std::string& what = find(findings, "foreign-owner")->what;
    EXPECT_NE(what.find(object + std::string(" (of ") + role.name()), std::string::npos) << what;
  }
  give("postgres");
  EXPECT_EQ(find(examine(database.url()), "foreign-owner"), nullptr);
}

TEST(PostgresExamine, a_fence_function_of_another_role_is_found) {
  const AdvisoryDatabase database;
  database.migrate();
  const Role role(database);
  Session owner(database.url());
  const std::string create =
      "CREATE FUNCTION public.baton_fence(text, text, integer) RETURNS void LANGUAGE sql AS "
      "'SELECT'";
  owner.sql(create);
  owner.sql("ALTER FUNCTION public.baton_fence(text, text, integer) OWNER TO " + role.name());
  EXPECT_EQ(find(examine(database.url()), "foreign-fence"), nullptr) << "there is no fence";
  owner.sql("DROP FUNCTION public.baton_fence(text, text, integer)");
  ASSERT_TRUE(install_fence(owner.get()));
  EXPECT_EQ(find(examine(database.url()), "foreign-fence"), nullptr);
  owner.sql(create);
  owner.sql("ALTER FUNCTION public.baton_fence(text, text, integer) OWNER TO " + role.name());
  for (const auto& url : {database.url(), advisory(database.url())}) {
    expect(examine(url), "foreign-fence", Severity::danger);
    EXPECT_NE(find(examine(url), "foreign-fence")->what.find(role.name()), std::string::npos);
  }
  owner.sql("DROP FUNCTION public.baton_fence(text, text, integer)");
}

TEST(PostgresExamine, a_password_that_may_go_over_the_network_in_clear_is_found) {
  const AdvisoryDatabase database;
  database.migrate();
  // With a password that the server does not ask for, and by a name that says nothing of where.
  const std::string plain = database.url();
  const auto host_at = plain.find('@') + 1;
  const auto user_at = plain.find("//") + 2;
  const std::string user = plain.substr(user_at, plain.find_first_of(":@", user_at) - user_at);
  const std::string rest = plain.substr(plain.find_first_of(":/", host_at));
  const auto at = [&](const std::string& host, const std::string& options) {
    return "postgres://" + user + ":s3cret@" + host + rest + options;
  };
  for (const std::string mode : {"", "?sslmode=prefer", "?sslmode=allow", "?sslmode=disable"}) {
    expect(examine(at("0.0.0.0", mode)), "password-in-clear", Severity::warning);
    expect(examine(advisory(at("0.0.0.0", mode))), "password-in-clear", Severity::warning);
    EXPECT_EQ(find(examine(at("127.0.0.1", mode)), "password-in-clear"), nullptr) << mode;
  }
  const Finding found = *find(examine(at("0.0.0.0", "")), "password-in-clear");
  EXPECT_EQ((found.what + found.consequence + found.remedy).find("s3cret"), std::string::npos);
}

TEST(PostgresExamine, advisory_keys_that_any_role_can_take_are_found) {
  const AdvisoryDatabase database;
  database.migrate();
  expect(examine(advisory(database.url())), "advisory-keys-open", Severity::advice);
  EXPECT_EQ(find(examine(database.url()), "advisory-keys-open"), nullptr) << "it takes none";
  Session(database.url()).sql("REVOKE CONNECT ON DATABASE " + database.name() + " FROM PUBLIC");
  EXPECT_EQ(find(examine(advisory(database.url())), "advisory-keys-open"), nullptr);
}

TEST(PostgresExamine, a_role_that_does_not_wait_for_its_commits_is_found) {
  const AdvisoryDatabase database;
  database.migrate();
  Session(database.url())
      .sql("ALTER DATABASE " + database.name() + " SET synchronous_commit = off");
  expect(examine(database.url()), "commit-not-durable", Severity::warning);
  expect(examine(advisory(database.url())), "commit-not-durable", Severity::warning);
}

TEST(PostgresExamine, a_timeout_for_idle_sessions_is_found_where_it_matters) {
  const AdvisoryDatabase database;
  database.migrate();
  Session(database.url())
      .sql("ALTER DATABASE " + database.name() + " SET idle_session_timeout = '5min'");
  expect(examine(database.url()), "idle-session-timeout", Severity::advice);
  EXPECT_EQ(find(examine(advisory(database.url())), "idle-session-timeout"), nullptr);
}

TEST(PostgresExamine, keepalives_that_take_hours_are_found) {
  const Database database;
  database.migrate();
  Session(database.url())
      .sql("ALTER DATABASE " + database.name() + " SET tcp_keepalives_idle = 7200");
  expect(examine(database.url()), "keepalives", Severity::advice);
  Session(database.url())
      .sql("ALTER DATABASE " + database.name() + " SET tcp_keepalives_idle = 60");
  EXPECT_EQ(find(examine(database.url()), "keepalives"), nullptr);
}

TEST(PostgresExamine, a_transaction_pool_is_found) {
  const AdvisoryDatabase database;
  database.migrate();
  const Bouncer bouncer(database, "transaction");
  expect(examine(bouncer.url()), "transaction-pooling", Severity::danger);
  expect(examine(advisory(bouncer.url())), "transaction-pooling", Severity::danger);
}

TEST(PostgresExamine, a_limit_on_connections_is_found) {
  const AdvisoryDatabase database;
  database.migrate();
  const Role role(database);
  Session(database.url()).sql("ALTER ROLE " + role.name() + " CONNECTION LIMIT 3");
  expect(examine(database.url_as(role.name())), "few-connections", Severity::warning);
  Session(database.url()).sql("ALTER ROLE " + role.name() + " CONNECTION LIMIT 20");
  EXPECT_EQ(find(examine(database.url_as(role.name())), "few-connections"), nullptr);
  expect(examine(advisory(database.url_as(role.name()))), "few-connections", Severity::warning);
}

TEST(PostgresExamine, a_way_that_is_slow_for_the_ttl_is_found) {
  const Database database;
  database.migrate();
  const std::string url = database.url();
  const auto colon = url.rfind(':');
  const auto slash = url.rfind('/');
  FaultProxy proxy(std::stoi(url.substr(colon + 1, slash - colon - 1)));
  const std::string through =
      url.substr(0, colon + 1) + std::to_string(proxy.port()) + url.substr(slash);
  proxy.delay(50ms);  // each way
  expect_by_ttl(*open_postgres_admin(through, soon()).value(), "slow");
}

TEST(PostgresExamine, clocks_that_are_apart_are_found) {
  const Database database;
  database.migrate();
  const auto settings = store::postgres::parse_settings(database.url()).value();
  const auto ours_is_behind = [] { return store::wall_clock() - 1h; };
  const auto findings =
      store::postgres::examine(settings, {.ttl = 1h, .clock = ours_is_behind}, soon()).value();
  expect(findings, "clock", Severity::warning);
  EXPECT_NE(find(findings, "clock")->what.find("ahead"), std::string::npos);
  EXPECT_EQ(find(examine(database.url()), "clock"), nullptr);
}

TEST(PostgresExamine, a_server_that_does_not_wait_for_its_disk_is_found) {
  PostgresServer server({.settings = {{"fsync", "off"}, {"full_page_writes", "off"}}});
  const Findings findings = examine(server.url());
  expect(findings, "fsync-off", Severity::danger);
  expect(findings, "full-page-writes-off", Severity::danger);
  EXPECT_EQ(findings.front().severity, Severity::danger) << "the worst comes first";
}

// A receiver of the server's log counts as a standby, for the server too.
class Follower {
 public:
  explicit Follower(const PostgresServer& server) {
    std::filesystem::permissions(dir_.path(), std::filesystem::perms::all);
    process_ = std::make_unique<Process>(ProcessOptions{
        .argv = {"pg_receivewal", "-h", "127.0.0.1", "-p", std::to_string(server.port()), "-U",
                 "postgres", "-D", dir_.path().string(), "--no-sync"}});
    const bool up = poll_until([&] {
      return server.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
                 .substr(0, 1) == "1";
    });
    if (!up) throw std::runtime_error("pg_receivewal: " + process_->err());
  }

 private:
  TempDir dir_{"follower"};
  std::unique_ptr<Process> process_;
};

TEST(PostgresExamine, an_asynchronous_standby_is_found) {
  PostgresServer server;
  EXPECT_EQ(find(examine(server.url()), "asynchronous-standby"), nullptr);
  const Follower follower(server);
  expect(examine(server.url()), "asynchronous-standby", Severity::warning);
}

TEST(PostgresExamine, commits_that_do_not_wait_for_the_synchronous_standby_are_found) {
  PostgresServer server(
      {.settings = {{"synchronous_commit", "local"}, {"synchronous_standby_names", "somebody"}}});
  expect(examine(server.url()), "commit-not-replicated", Severity::warning);
}

TEST(PostgresExamine, a_standby_is_found) {
  PostgresServer standby;
  standby.make_standby();
  standby.restart();
  const Findings findings = examine(standby.url());
  expect(findings, "standby", Severity::danger);
}

}  // namespace
}  // namespace baton::test
