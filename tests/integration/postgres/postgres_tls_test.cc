// What libpq does with its own options in the URL: TLS, and the name under which we are seen.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "baton/locks.h"
#include "baton/store_admin.h"
#include "integration/postgres/postgres_database.h"
#include "support/certificates.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class Deaf final : public WakeSink {
 public:
  void wake(std::span<const GrantId>) override {}
};

// The server's own certificate, for 127.0.0.1. It reads no key that others could read.
class ServerFiles : public Certificates {
 public:
  ServerFiles() {
    sign("server", "subjectAltName=IP:127.0.0.1");
    make_authority("stranger");
    ::chmod(dir().c_str(), 0711);
    ::chmod(file("server.key").c_str(), 0600);
    for (const char* name : {"server.pem", "ca.pem", "stranger.pem"}) {
      ::chmod(file(name).c_str(), 0644);
    }
    if (::geteuid() != 0) return;
    const passwd* postgres = ::getpwnam("postgres");
    if (postgres == nullptr ||
        ::chown(file("server.key").c_str(), postgres->pw_uid, postgres->pw_gid) != 0) {
      throw std::runtime_error("cannot give the key to the server");
    }
  }
};

// One server for all: none of them harms it.
struct TlsServer {
  const ServerFiles files;
  const PostgresServer server{{.settings = {{"ssl", "on"},
                                            {"ssl_cert_file", files.file("server.pem")},
                                            {"ssl_key_file", files.file("server.key")}}}};
};

class PostgresTls : public ::testing::Test {
 protected:
  static inline std::unique_ptr<TlsServer> shared;
  const ServerFiles& files = shared->files;
  const PostgresServer& server = shared->server;

  static void SetUpTestSuite() { shared = std::make_unique<TlsServer>(); }
  static void TearDownTestSuite() { shared.reset(); }

  void SetUp() override {
    for (const char* scheme : {"postgres", "postgres-advisory"}) {
      open_admin(at(scheme), soon()).value()->migrate(soon()).value();
    }
    EXPECT_TRUE(poll_until([&] { return sessions() == "0||"; })) << sessions();
  }
  [[nodiscard]] std::string at(const std::string& scheme) const {
    const std::string url = server.url();
    return scheme + url.substr(url.find(':'));
  }
  [[nodiscard]] std::string verified(const std::string& scheme, const std::string& authority,
                                     const std::string& mode = "verify-full") const {
    return at(scheme) + "?sslmode=" + mode + "&sslrootcert=" + files.file(authority + ".pem") +
           "&application_name=shop";
  }
  // How many sessions there are besides the one that asks, and what is true of all of them.
  [[nodiscard]] std::string sessions() const {
    return server.sql(
        "SELECT count(*), bool_and(ssl), string_agg(DISTINCT application_name, ',') "
        "FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
  }
  [[nodiscard]] std::string listening() const {
    return server.sql(
        "SELECT ssl, application_name FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) "
        "WHERE query ILIKE 'listen%'");
  }
};

TEST_F(PostgresTls, requests_renewals_and_wakeups_all_go_over_it_under_the_name_in_the_url) {
  const auto store = open_store(verified("postgres", "ca"), soon());
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_EQ(ask(**store, acquire(1, "DEFAULT:job")).outcome, Outcome::granted);
  EXPECT_EQ(sessions(), "1|t|shop");
  ASSERT_EQ(ask(**store, request(Verb::renew, 1, "DEFAULT:job")).outcome, Outcome::granted);
  EXPECT_EQ(sessions(), "2|t|shop") << "renewals have a connection of their own";
  Deaf sink;
  const auto watch = (*store)->watch("process-1", sink);
  EXPECT_TRUE(poll_until([&] { return listening() == "t|shop"; })) << listening();
  EXPECT_EQ(sessions(), "3|t|shop");
}

TEST_F(PostgresTls, holders_and_waiters_of_advisory_locks_use_it_too) {
  const auto store = open_store(verified("postgres-advisory", "ca"), soon());
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_EQ(ask(**store, acquire(1, "DEFAULT:job")).outcome, Outcome::granted);
  ASSERT_EQ(ask(**store, acquire(2, "DEFAULT:job", 60s)).outcome, Outcome::queued);
  const std::string found = sessions();
  EXPECT_NE(found.find("|t|shop"), std::string::npos) << found;
  EXPECT_GE(std::stoi(found), 2) << found;
}

TEST_F(PostgresTls, without_options_we_are_called_baton) {
  const auto store = open_store(at("postgres"), soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(server.sql("SELECT application_name FROM pg_stat_activity "
                       "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"),
            "baton");
}

TEST_F(PostgresTls, a_server_that_another_authority_vouches_for_is_refused_in_one_line) {
  for (const char* scheme : {"postgres", "postgres-advisory"}) {
    for (const char* mode : {"verify-full", "verify-ca"}) {
      const auto store = open_store(verified(scheme, "stranger", mode), soon());
      ASSERT_FALSE(store) << scheme << ' ' << mode;
      const std::string& message = store.error().message;
      EXPECT_NE(message.find("certificate verify failed"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_FALSE(store.error().in_doubt);
    }
  }
  EXPECT_EQ(server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shop'"),
            "0");
}

TEST_F(PostgresTls, a_server_without_it_is_refused_if_it_is_required) {
  const char* plain = std::getenv("BATON_TEST_POSTGRES");
  ASSERT_NE(plain, nullptr);
  const auto store = open_store(std::string(plain) + "?sslmode=require", soon());
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("SSL"), std::string::npos) << store.error().message;
  EXPECT_EQ(store.error().message.find('\n'), std::string::npos) << store.error().message;
}

}  // namespace
}  // namespace baton::test
