// rediss:// against real servers: who is believed, and that nothing is said to anybody else.

#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "baton/locks.h"
#include "integration/redis/redis_support.h"
#include "support/certificates.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"  // free_port
#include "support/wait.h"

namespace baton::test {
namespace {

// A certificate for 127.0.0.1 and localhost, one for another host, one whose time is over, and one
// for a client.
class ServerFiles : public Certificates {
 public:
  ServerFiles() {
    sign("server", "subjectAltName=IP:127.0.0.1,DNS:localhost");
    sign("elsewhere", "subjectAltName=DNS:elsewhere.example");
    sign("client", "extendedKeyUsage=clientAuth");
    sign_expired("expired", "subjectAltName=IP:127.0.0.1");
    make_authority("stranger");
  }
};

const ServerFiles& files() {
  static const ServerFiles made;
  return made;
}

using Options = std::map<std::string, std::string>;

// One that speaks TLS on its port and nothing else there; tests ask it over its socket.
class TlsServer {
 public:
  explicit TlsServer(const std::string& certificate = "server", const Options& more = {})
      : server_({.settings = settings(certificate, more, port_)}) {}

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string at(const std::string& host, const std::string& options,
                               const std::string& user = "") const {
    return "rediss://" + user + host + ":" + std::to_string(port_) + "/0?" + options;
  }
  [[nodiscard]] std::string url(const std::string& options = "") const {
    return at("127.0.0.1", "ca=" + files().file("ca.pem") + (options.empty() ? "" : "&" + options));
  }
  RedisServer* operator->() { return &server_; }

 private:
  static Options settings(const std::string& certificate, const Options& more, int port) {
    Options all{{"tls-port", std::to_string(port)},
                {"tls-cert-file", files().file(certificate + ".pem")},
                {"tls-key-file", files().file(certificate + ".key")},
                {"tls-ca-cert-file", files().file("ca.pem")},
                {"tls-auth-clients", "no"}};
    for (const auto& [name, value] : more) all[name] = value;
    return all;
  }

  const int port_ = free_port();
  RedisServer server_;
};

Deadline within(Millis limit) { return BootClock::now() + limit; }

Error refusal_of(const std::string& url, Deadline deadline = soon()) {
  const auto store = open_store(url, deadline);
  EXPECT_FALSE(store);
  if (store) return Error{};
  EXPECT_EQ(store.error().code, Code::unavailable);
  EXPECT_FALSE(store.error().in_doubt);
  EXPECT_EQ(store.error().message.find('\n'), std::string::npos) << store.error().message;
  return store.error();
}

void expect_says(const Error& error, const std::string& words) {
  EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
}

class RedisTls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<TlsServer>(); }
  static void TearDownTestSuite() { shared_.reset(); }
  void SetUp() override { server->ask({"FLUSHALL"}); }

  static inline std::unique_ptr<TlsServer> shared_;
  TlsServer& server = *shared_;
};

class Counting final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override { count += static_cast<int>(grants.size()); }
  std::atomic<int> count = 0;
};

TEST_F(RedisTls, requests_renewals_and_wakeups_all_go_over_it) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const auto store = open_redis(server.at(host, "ca=" + files().file("ca.pem")));
    ASSERT_EQ(take(*store, 1).outcome, Outcome::granted);
    ASSERT_EQ(apply(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
    Counting sink;
    const auto watch = store->watch("process-2", sink);
    ASSERT_EQ(apply(*store, request(Verb::acquire, 2, kJob, Mode::X, 60s)).outcome,
              Outcome::queued);
    // The subscription may begin late; then everybody is woken.
    ASSERT_TRUE(poll_until([&] {
      return server->ask({"PUBSUB", "CHANNELS"}).find("process-2") != std::string::npos;
    }));
    ASSERT_EQ(end(*store, 1).outcome, Outcome::done);
    EXPECT_TRUE(poll_until([&] { return sink.count > 0; }));
    ASSERT_EQ(apply(*store, request(Verb::claim, 2, kJob)).outcome, Outcome::granted);
    ASSERT_EQ(end(*store, 2).outcome, Outcome::done);
  }
}

// More than any buffer between the two holds, in both directions.
TEST_F(RedisTls, large_batches_go_through_it) {
  const auto store = open_redis(server.url());
  std::vector<Request> batch;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    batch.push_back(request(Verb::acquire, i + 1, "DEFAULT:" + std::to_string(i)));
    batch.back().metadata["text"] = std::string(3000, 'x');
    batch.back().owner = "node";
  }
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  for (const Reply& reply : *replies) ASSERT_EQ(reply.outcome, Outcome::granted);
  const auto found = store->find({.limit = 1000}, soon());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GE(found->items.size(), 100U);
}

TEST_F(RedisTls, a_server_that_another_authority_vouches_for_is_refused) {
  const Error error = refusal_of(server.at("127.0.0.1", "ca=" + files().file("stranger.pem")));
  expect_says(error, "certificate");
  EXPECT_FALSE(error.retryable);
}

TEST_F(RedisTls, without_ca_only_the_authorities_of_the_system_are_believed) {
  expect_says(refusal_of(server.at("127.0.0.1", "")), "certificate");
}

TEST_F(RedisTls, a_certificate_of_another_host_is_refused) {
  const TlsServer elsewhere("elsewhere");
  expect_says(refusal_of(elsewhere.url()), "IP address mismatch");
  expect_says(refusal_of(elsewhere.at("localhost", "ca=" + files().file("ca.pem"))),
              "hostname mismatch");
}

TEST_F(RedisTls, a_certificate_whose_time_is_over_is_refused) {
  const TlsServer expired("expired");
  expect_says(refusal_of(expired.url()), "expired");
}

TEST_F(RedisTls, verify_no_believes_anybody) {
  const TlsServer expired("expired");
  EXPECT_EQ(take(*open_redis(expired.at("127.0.0.1", "verify=no")), 1).outcome, Outcome::granted);
}

TEST_F(RedisTls, a_server_without_it_is_refused_in_time) {
  const RedisServer plain;
  const Instant before = BootClock::now();
  const Error error = refusal_of(
      "rediss://127.0.0.1:" + std::to_string(plain.port()) + "?apply_timeout=1s", within(1500ms));
  expect_says(error, "is this the port on which the server speaks TLS?");
  EXPECT_LT(BootClock::now() - before, 20s);
}

TEST_F(RedisTls, a_server_that_says_nothing_ends_the_handshake_at_the_deadline) {
  FaultProxy proxy(server.port());
  proxy.cut();
  const std::string url =
      "rediss://127.0.0.1:" + std::to_string(proxy.port()) + "?ca=" + files().file("ca.pem");
  const Instant before = BootClock::now();
  expect_says(refusal_of(url, within(500ms)), "in time");
  EXPECT_LT(BootClock::now() - before, 4s) << "apply_timeout alone would be 5 s";
}

TEST_F(RedisTls, a_server_that_falls_silent_ends_a_request_at_its_deadline) {
  FaultProxy proxy(server.port());
  const auto store = open_redis("rediss://127.0.0.1:" + std::to_string(proxy.port()) +
                                "?ca=" + files().file("ca.pem"));
  ASSERT_EQ(take(*store, 1).outcome, Outcome::granted);
  proxy.silence();
  const Instant before = BootClock::now();
  const auto reply = try_apply(*store, request(Verb::release, 1, kJob), within(500ms));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::unavailable);
  EXPECT_TRUE(reply.error().in_doubt);
  EXPECT_LT(BootClock::now() - before, 4s);
  // A new connection, a new handshake.
  EXPECT_EQ(take(*store, 2, "DEFAULT:other").outcome, Outcome::granted);
}

TEST_F(RedisTls, a_server_that_wants_a_certificate_of_the_client_gets_one) {
  const TlsServer strict("server", {{"tls-auth-clients", "yes"}});
  const std::string own = "cert=" + files().file("client.pem");
  const auto store = open_redis(strict.url(own + "&key=" + files().file("client.key")));
  EXPECT_EQ(take(*store, 1).outcome, Outcome::granted);
  expect_says(refusal_of(strict.url(), within(1s)), "certificate: give cert= and key=");
  expect_says(refusal_of(strict.url(own + "&key=" + files().file("server.key"))), "cannot use key");
  expect_says(refusal_of(strict.url("cert=/nothing/here&key=/nor/there")), "cannot read cert");
}

TEST_F(RedisTls, an_authority_that_cannot_be_read_is_said) {
  const Error error = refusal_of(server.at("127.0.0.1", "ca=/nothing/here"));
  expect_says(error, "cannot read ca=/nothing/here");
  EXPECT_FALSE(error.retryable);
}

// A server without a valid certificate must not learn the password.
TEST_F(RedisTls, the_password_is_never_sent_before_the_certificate_is_verified) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::string heard;
  std::jthread thief([&] {
    const int guest = ::accept(listener, nullptr, nullptr);
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(guest, bytes, sizeof bytes, 0)) > 0;) {
      heard.append(bytes, static_cast<std::size_t>(got));
    }
    ::close(guest);
  });
  refusal_of("rediss://u:s3cret@127.0.0.1:" + std::to_string(ntohs(address.sin_port)) +
                 "?apply_timeout=500ms",
             within(600ms));
  ::shutdown(listener, SHUT_RDWR);
  thief.join();
  ::close(listener);
  EXPECT_FALSE(heard.empty());
  EXPECT_EQ(heard.find("s3cret"), std::string::npos);

  // Nor does a real server whose certificate is wrong.
  TlsServer elsewhere("elsewhere", {{"requirepass", "s3cret"}});
  const auto refused =
      open_store(elsewhere.at("127.0.0.1", "ca=" + files().file("ca.pem"), ":s3cret@"), within(1s));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().code, Code::unauthorized);
  EXPECT_EQ(elsewhere->log().find("s3cret"), std::string::npos);
  const auto right = open_store(elsewhere.at("127.0.0.1", "verify=no", ":s3cret@"), soon());
  EXPECT_TRUE(right) << right.error().message;
  const auto wrong = open_store(elsewhere.at("127.0.0.1", "verify=no", ":n0tit@"), soon());
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::unauthorized);
  EXPECT_EQ(wrong.error().message.find("n0tit"), std::string::npos) << wrong.error().message;
}

TEST_F(RedisTls, old_versions_of_tls_are_refused) {
  const TlsServer old("server", {{"tls-protocols", "TLSv1.1"}, {"tls-ciphers", "ALL:@SECLEVEL=0"}});
  EXPECT_TRUE(refusal_of(old.url(), within(1s)).retryable);
}

TEST_F(RedisTls, a_connection_that_breaks_raises_no_signal) {
  FaultProxy proxy(server.port());
  const auto store = open_redis("rediss://127.0.0.1:" + std::to_string(proxy.port()) +
                                "?ca=" + files().file("ca.pem"));
  for (std::uint64_t grant = 1; grant < 10; ++grant) {
    proxy.reset();
    (void)try_apply(*store, request(Verb::acquire, grant, kJob), within(2s));
  }
}

}  // namespace
}  // namespace baton::test
