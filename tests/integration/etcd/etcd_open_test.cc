// What the store says to bad URLs, wrong passwords, servers that are not there, and over TLS.

#include <gtest/gtest.h>

#include "conformance/harness.h"
#include "http_client/http_client.h"
#include "store/etcd/etcd_store.h"
#include "store/etcd/settings.h"
#include "support/certificates.h"
#include "support/etcd_server.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

Error error_of(const std::string& url) {
  const auto store = open_etcd_store(url, BootClock::now() + 5s);
  if (store) return {.message = "opened"};
  EXPECT_EQ(store.error().message.find("secret"), std::string::npos) << store.error().message;
  EXPECT_FALSE(store.error().in_doubt);
  return store.error();
}

// Longer than any test.
Request long_hold(std::uint64_t number) {
  Request request = acquire(number, "DEFAULT:job:" + std::to_string(number));
  request.ttl = std::chrono::minutes(10);
  return request;
}

Outcome take(LockStore& store, std::uint64_t number) {
  const Request request = long_hold(number);
  auto replies = store.apply({&request, 1}, soon());
  EXPECT_TRUE(replies) << replies.error().message;
  return replies ? replies->at(0).outcome : Outcome::invalid;
}

int port_of(const EtcdServer& server) {
  return std::stoi(server.endpoint().substr(server.endpoint().find(':') + 1));
}

// The line holds the next write back, and nobody answers.
void send_in_vain(LockStore& store, FaultProxy& line, const Request& request) {
  line.hold("request_put");
  ASSERT_TRUE(poll_until([&] {
    EXPECT_FALSE(store.apply({&request, 1}, BootClock::now() + 2s));
    return !line.held().empty();
  }));
}

void fill(const EtcdServer& server) {
  const std::string value(65'536, 'A');
  ASSERT_TRUE(poll_until([&] {
    (void)server.post(0, "/v3/kv/put", R"({"key":"eA==","value":")" + value + R"("})");
    return server.post(0, "/v3/maintenance/alarm", R"({"action":"GET"})").find("NOSPACE") !=
           std::string::npos;
  }));
}

TEST(EtcdUrl, says_where_the_members_are) {
  const auto settings =
      store::etcd::parse_settings("etcd://u%40x:p%2Fw@one,two:2380,[::1]:99/locks/of/shop/")
          .value();
  EXPECT_EQ(settings.endpoints,
            (std::vector<std::string>{"http://one:2379", "http://two:2380", "http://[::1]:99"}));
  EXPECT_EQ(settings.user, "u@x");
  EXPECT_EQ(settings.password, "p/w");
  EXPECT_EQ(settings.prefix, "locks/of/shop");
  EXPECT_EQ(settings.location.find("p/w"), std::string::npos);
  const auto tls =
      store::etcd::parse_settings("etcds://host?ca=/a%20b.pem&cert=c&key=k&apply_timeout=2s")
          .value();
  EXPECT_EQ(tls.endpoints, (std::vector<std::string>{"https://host:2379"}));
  EXPECT_EQ(tls.tls.ca_file, "/a b.pem");
  EXPECT_TRUE(tls.tls.verify);
  EXPECT_EQ(tls.prefix, "baton");
  EXPECT_EQ(tls.apply_limit, 2000ms);
}

TEST(EtcdUrl, refuses_what_it_does_not_understand) {
  for (const char* url : {"etcd://",
                          "etcd://host:",
                          "etcd://host:0",
                          "etcd://host:70000",
                          "etcd://host:x",
                          "etcd://a,,b",
                          "etcd://[::1",
                          "etcd://a b",
                          "etcd://u:secret@x@host",
                          "etcd://:secret@host",
                          "etcd://u:sec%ret@host",
                          "etcd://u:sec/secret@host",
                          "etcd://u:sec?secret@host",
                          "etcd://u:12?secret@host",
                          "etcd://u:12?x=1&secret=2@host",
                          "etcd://host?colour=secret",
                          "etcd://host?ca=x",
                          "etcds://host?cert=x",
                          "etcds://host?verify=maybe",
                          "etcd://host?apply_timeout=1",
                          "http://host"}) {
    EXPECT_EQ(error_of(url).code, Code::bad_url) << url;
  }
}

TEST(EtcdOpen, a_server_that_is_not_there_is_unavailable) {
  const Error error =
      error_of("etcd://me:secret@127.0.0.1:" + std::to_string(free_port()) + "/baton");
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_TRUE(error.retryable);
  EXPECT_NE(error.message.find("127.0.0.1"), std::string::npos) << error.message;
}

TEST(EtcdOpen, another_endpoint_is_used_when_one_is_not_there) {
  const EtcdServer server;
  const auto store = open_etcd_store(
      "etcd://127.0.0.1:" + std::to_string(free_port()) + "," + server.endpoint() + "/x", soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(take(**store, 1), Outcome::granted);
}

TEST(EtcdOpen, a_server_that_went_away_is_unavailable_and_comes_back) {
  EtcdServer server;
  const auto store = open_etcd_store(server.url(), soon()).value();
  ASSERT_EQ(take(*store, 1), Outcome::granted);
  server.stop(0);
  const Request request = acquire(2, "DEFAULT:job:2");
  const auto gone = store->apply({&request, 1}, BootClock::now() + 2s);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::unavailable);
  EXPECT_TRUE(gone.error().retryable);
  server.start(0);
  EXPECT_EQ(take(*store, 2), Outcome::granted);
}

TEST(EtcdOpen, a_server_that_hangs_is_left_in_time_and_in_doubt) {
  EtcdServer server;
  const auto store = open_etcd_store(server.url(), soon()).value();
  ASSERT_EQ(take(*store, 1), Outcome::granted);
  ASSERT_TRUE(stop_still(server.process(0).pid()));
  const Request request = long_hold(2);
  const auto begin = BootClock::now();
  const auto late = store->apply({&request, 1}, begin + 500ms);
  EXPECT_LT(BootClock::now() - begin, 10s);
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().in_doubt);
  const Request look = same_targets(Verb::get, request);
  const auto unread = store->apply({&look, 1}, BootClock::now() + 500ms);
  ASSERT_FALSE(unread);
  EXPECT_FALSE(unread.error().in_doubt) << "a look changes nothing";
  server.process(0).kill(SIGCONT);
  EXPECT_EQ(take(*store, 2), Outcome::granted) << "its own grant, if the first try arrived";
}

class EtcdAuth : public ::testing::Test {
 protected:
  EtcdServer server{{.arguments = {"--auth-token-ttl", "1"}}};

  void SetUp() override {
    post("/v3/auth/user/add", R"({"name":"root","password":"root-secret"})");
    post("/v3/auth/role/add", R"({"name":"root"})");
    post("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
    post("/v3/auth/user/add", R"({"name":"shop","password":"sec:ret/"})");
    post("/v3/auth/user/add", R"({"name":"guest","password":"secret"})");
    post("/v3/auth/role/add", R"({"name":"locks"})");
    // locks/ to locks0
    post(
        "/v3/auth/role/grant",
        R"({"name":"locks","perm":{"permType":"READWRITE","key":"bG9ja3Mv","range_end":"bG9ja3Mw"}})");
    post("/v3/auth/user/grant", R"({"user":"shop","role":"locks"})");
    // All below half/, but half/e/ to half/e0 only to read.
    post("/v3/auth/user/add", R"({"name":"half","password":"secret"})");
    post("/v3/auth/role/add", R"({"name":"half"})");
    post(
        "/v3/auth/role/grant",
        R"({"name":"half","perm":{"permType":"READWRITE","key":"aGFsZi9u","range_end":"aGFsZjA="}})");
    post(
        "/v3/auth/role/grant",
        R"({"name":"half","perm":{"permType":"READ","key":"aGFsZi9lLw==","range_end":"aGFsZi9lMA=="}})");
    post("/v3/auth/user/grant", R"({"user":"half","role":"half"})");
    post("/v3/auth/enable", "{}");
  }
  void post(const std::string& path, const std::string& body) const {
    ASSERT_NE(server.post(0, path, body).find(" 200 "), std::string::npos)
        << path << server.post(0, path, body);
  }
  [[nodiscard]] std::string as(const std::string& user, const std::string& prefix) const {
    return "etcd://" + user + (user.empty() ? "" : "@") + server.endpoint() + "/" + prefix;
  }
};

TEST_F(EtcdAuth, a_user_with_rights_below_the_prefix_takes_locks) {
  const auto store = open_etcd_store(as("shop:sec%3Aret%2F", "locks"), soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(take(**store, 1), Outcome::granted);
  EXPECT_EQ(take(**store, 2), Outcome::granted);
}

TEST_F(EtcdAuth, a_token_that_is_over_is_replaced) {
  const auto store = open_etcd_store(as("shop:sec%3Aret%2F", "locks"), soon()).value();
  server.restart();  // which forgets every token
  EXPECT_EQ(take(*store, 1), Outcome::granted);
}

TEST_F(EtcdAuth, wrong_credentials_and_missing_rights_are_said) {
  EXPECT_EQ(error_of(as("shop:secret", "locks")).code, Code::unauthorized);
  EXPECT_EQ(error_of(as("nobody:secret", "locks")).code, Code::unauthorized);
  EXPECT_EQ(error_of(as("", "locks")).code, Code::unauthorized);
  EXPECT_EQ(error_of(as("guest:secret", "locks")).code, Code::unauthorized);
  EXPECT_EQ(error_of(as("shop:sec%3Aret%2F", "others")).code, Code::unauthorized);
}

// Only a full store may leave the unanswered request to come true later.
TEST_F(EtcdAuth, nothing_more_is_written_by_whoever_cannot_make_an_unanswered_request_void) {
  FaultProxy line(port_of(server));
  const auto store =
      open_etcd_store("etcd://half:secret@127.0.0.1:" + std::to_string(line.port()) + "/half",
                      soon())
          .value();
  ASSERT_EQ(take(*store, 1), Outcome::granted);
  ASSERT_NO_FATAL_FAILURE(send_in_vain(*store, line, long_hold(2)));
  const Request request = long_hold(3);
  const auto refused = store->apply({&request, 1}, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unauthorized) << refused.error().message;
  EXPECT_FALSE(refused.error().in_doubt);
}

TEST(EtcdOpen, a_password_for_a_server_that_asks_for_none_is_refused) {
  const EtcdServer server;
  const Error error = error_of("etcd://me:secret@" + server.endpoint());
  EXPECT_EQ(error.code, Code::unauthorized);
  EXPECT_NE(error.message.find("not enabled"), std::string::npos) << error.message;
}

// Its tokens name the revision of users and roles that they were made for.
TEST(EtcdOpen, a_token_from_before_a_user_was_added_is_replaced) {
  const TempDir dir("jwt");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"openssl", "genrsa", "-out", "key.pem", "2048"},
           {"openssl", "rsa", "-in", "key.pem", "-pubout", "-out", "public.pem"}}) {
    const Finished done = run({.argv = words, .cwd = dir.path()});
    ASSERT_TRUE(done.status.success()) << done.err;
  }
  const EtcdServer server(
      {.arguments = {"--auth-token",
                     "jwt,sign-method=RS256,pub-key=" + (dir / "public.pem").string() +
                         ",priv-key=" + (dir / "key.pem").string()}});
  http_client::HttpClient http;
  std::string token;
  const auto post = [&](const std::string& path, const std::string& body) {
    http_client::HttpRequest request{
        .method = "POST", .url = "http://" + server.endpoint() + path, .body = body};
    if (!token.empty()) request.headers.emplace_back("Authorization", token);
    const auto answer = http.send(request, soon());
    EXPECT_TRUE(answer && answer->ok()) << path << (answer ? answer->body : answer.error().message);
    return answer ? answer->body : "";
  };
  const std::string root = R"({"name":"root","password":"secret"})";
  post("/v3/auth/user/add", root);
  post("/v3/auth/role/add", R"({"name":"root"})");
  post("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
  post("/v3/auth/enable", "{}");
  const auto store = open_etcd_store("etcd://root:secret@" + server.endpoint(), soon()).value();
  ASSERT_EQ(take(*store, 1), Outcome::granted);
  const std::string answer = post("/v3/auth/authenticate", root);
  const auto begin = answer.find(R"("token":")") + 9;
  token = answer.substr(begin, answer.find('"', begin) - begin);
  post("/v3/auth/user/add", R"({"name":"another","password":"secret"})");
  EXPECT_EQ(take(*store, 2), Outcome::granted);
}

// etcd may say so of a transaction that it has carried out.
TEST(EtcdOpen, a_write_that_meets_a_used_up_quota_is_in_doubt) {
  const EtcdServer full({.arguments = {"--quota-backend-bytes=65536"}});
  const auto store = open_etcd_store(full.url(), soon()).value();
  ASSERT_EQ(take(*store, 1), Outcome::granted);  // and has a lease
  ASSERT_NO_FATAL_FAILURE(fill(full));
  const Request request = long_hold(2);
  const auto refused = store->apply({&request, 1}, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_TRUE(refused.error().retryable) << "somebody will make room";
  EXPECT_TRUE(refused.error().in_doubt);
  const Request held = acquire(1, "DEFAULT:job:1");
  for (const Verb verb : {Verb::renew, Verb::release}) {
    const Request next = same_targets(verb, held);
    const auto goes_on = store->apply({&next, 1}, soon());
    ASSERT_TRUE(goes_on) << goes_on.error().message;
    EXPECT_EQ(goes_on->at(0).outcome, verb == Verb::renew ? Outcome::granted : Outcome::done);
  }
}

// Then nothing that rests on that write epoch can be written any more, and there is no room to say
// so again.
TEST(EtcdOpen, a_full_store_takes_releases_although_the_end_of_a_write_epoch_was_not_acknowledged) {
  const EtcdServer server({.arguments = {"--quota-backend-bytes=65536"}});
  FaultProxy line(port_of(server));
  const auto store =
      open_etcd_store("etcd://127.0.0.1:" + std::to_string(line.port()), soon()).value();
  ASSERT_EQ(take(*store, 1), Outcome::granted);
  ASSERT_NO_FATAL_FAILURE(send_in_vain(*store, line, long_hold(2)));
  ASSERT_NO_FATAL_FAILURE(send_in_vain(*store, line, long_hold(2)));  // ends the write epoch first
  const std::string end = line.held();
  ASSERT_NE(server.post(0, "/v3/kv/txn", end.substr(end.find("\r\n\r\n") + 4)).find(" 200 "),
            std::string::npos);
  ASSERT_NO_FATAL_FAILURE(fill(server));
  const Request release = same_targets(Verb::release, long_hold(1));
  const auto released = store->apply({&release, 1}, soon());
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(released->at(0).outcome, Outcome::done);
}

// A CA, a server certificate for 127.0.0.1 and one for a client, made by the real openssl.
class EtcdTls : public ::testing::Test {
 protected:
  Certificates certificates;

  void SetUp() override {
    certificates.sign("server", "subjectAltName=IP:127.0.0.1");
    certificates.sign("client", "extendedKeyUsage=clientAuth");
  }
  [[nodiscard]] std::string file(const std::string& name) const { return certificates.file(name); }
};

TEST_F(EtcdTls, both_sides_prove_who_they_are) {
  const EtcdServer server(
      {.arguments = {"--cert-file", file("server.pem"), "--key-file", file("server.key"),
                     "--trusted-ca-file", file("ca.pem"), "--client-cert-auth"},
       .scheme = "https"});
  const std::string ca = "?ca=" + file("ca.pem");
  const std::string client = "&cert=" + file("client.pem") + "&key=" + file("client.key");
  const auto store = open_etcd_store(server.url(ca + client), soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(take(**store, 1), Outcome::granted);

  EXPECT_EQ(error_of(server.url(ca)).code, Code::unavailable) << "no client certificate";
  const Error untrusted = error_of(server.url("?" + client.substr(1)));
  EXPECT_EQ(untrusted.code, Code::unavailable) << "the system does not know this CA";
  EXPECT_FALSE(untrusted.retryable);
  EXPECT_NE(untrusted.message.find("certificate"), std::string::npos) << untrusted.message;
  EXPECT_TRUE(open_etcd_store(server.url("?verify=no" + client), soon()));
  EXPECT_EQ(error_of("etcd://" + server.endpoint()).code, Code::unavailable) << "plain to TLS";
  EXPECT_FALSE(error_of(server.url("?ca=" + file("none.pem"))).retryable);
}

TEST_F(EtcdTls, a_certificate_for_another_host_is_refused) {
  certificates.sign("server", "subjectAltName=DNS:elsewhere.example");
  const EtcdServer server(
      {.arguments = {"--cert-file", file("server.pem"), "--key-file", file("server.key")},
       .scheme = "https"});
  const Error error = error_of(server.url("?ca=" + file("ca.pem")));
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_FALSE(error.retryable);
}

}  // namespace
}  // namespace baton::test
