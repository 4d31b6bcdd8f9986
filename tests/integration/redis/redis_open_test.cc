// Redis servers as they are found: closed, forbidden, full, read-only.

#include "baton/locks.h"
#include "integration/redis/redis_support.h"

namespace baton::test {
namespace {

class RedisOpen : public RedisTest {
 protected:
  static std::string at_server(const std::string& who) {
    return "redis://" + who + "@" + server_->address();
  }
  static Error refused(const std::string& url) {
    const auto store = open_redis_store(url, soon());
    EXPECT_FALSE(store) << "opened";
    return store ? Error{} : store.error();
  }
  static std::string detail(StoreAdmin& admin, const std::string& name) {
    const auto status = admin.status(soon());
    EXPECT_TRUE(status) << status.error().message;
    if (!status) return "";
    for (const auto& [label, value] : status->details) {
      if (label == name) return value;
    }
    return "";
  }
};

TEST_F(RedisOpen, a_malformed_url_is_refused_without_repeating_it) {
  for (const std::string url :
       {"redis://u:s3cret@h:port/0", "redis://u:s3cret@h:0/0", "redis://u:s3c@ret@h/0",
        "redis://u:s3c/ret@h/0", "redis://u:s3cret@[::1/0", "redis://u:s3cret@h/x",
        "redis://u:s3%cret@h/0", "redis://u:s3cret@h/0?nonsense=s3cret",
        "redis://u:s3cret@h/0?prefix=a{b", "redis://u:s3cret@h/0?apply_timeout=s3cret",
        "redis://u:s3cret@h/0?wait_timeout=9s&wait_replicas=1", "redis+unix://u:s3cret@h/path",
        "redis+unix://", "redis:nothing"}) {
    const Error error = refused(url);
    EXPECT_EQ(error.code, Code::bad_url) << url;
    EXPECT_EQ(error.message.find("s3c"), std::string::npos) << error.message;
  }
}

TEST_F(RedisOpen, the_options_of_tls_are_checked) {
  for (const auto& [url, why] : {std::pair{"redis://u:s3cret@h/0?ca=f", "rediss://"},
                                 {"redis://h?verify=no", "rediss://"},
                                 {"rediss://h?verify=perhaps", "yes or no"},
                                 {"rediss://h?cert=f", "go together"},
                                 {"rediss://h?key=f", "go together"},
                                 {"rediss://h?ca=", "no file"}}) {
    const Error error = refused(url);
    EXPECT_EQ(error.code, Code::bad_url) << url;
    EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
  }
}

TEST_F(RedisOpen, a_server_that_is_not_there_is_unavailable) {
  const Error error = refused("redis://u:s3cret@127.0.0.1:1/0");
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_TRUE(error.retryable);
  EXPECT_FALSE(error.in_doubt);
  EXPECT_NE(error.message.find("127.0.0.1:1"), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find("s3cret"), std::string::npos) << error.message;
  EXPECT_EQ(refused("redis+unix:///nowhere/at.all").code, Code::unavailable);
}

TEST_F(RedisOpen, a_wrong_password_is_unauthorized_and_never_shown) {
  RedisServer closed({.settings = {{"requirepass", "r1ght"}}});
  const std::string address = closed.address() + "/0";
  for (const std::string& url :
       {"redis://:wr0ng@" + address, "redis://someone:wr0ng@" + address, "redis://" + address}) {
    const Error error = refused(url);
    EXPECT_EQ(error.code, Code::unauthorized) << error.message;
    EXPECT_EQ(error.message.find("wr0ng"), std::string::npos) << error.message;
  }
  EXPECT_TRUE(open_redis_store("redis://:r1ght@" + address, soon()));
}

TEST_F(RedisOpen, a_user_with_the_rights_that_the_manual_names_can_do_everything) {
  ask({"ACL",       "SETUSER",      "baton",        "on",      ">p%w",
       "~{baton:*", "&baton:*",     "+hello",       "+select", "+time",
       "+evalsha",  "+script|load", "+get",         "+mget",   "+set",
       "+msetnx",   "+pexpireat",   "+del",         "+exists", "+scan",
       "+publish",  "+subscribe",   "+unsubscribe", "+ping",   "+wait"});
  auto locks = open(at_server("baton:p%25w")).value();
  auto other = open(at_server("baton:p%25w")).value();
  auto lease = locks.acquire({.subject = "job"}, {.ttl = 5s});
  ASSERT_TRUE(lease) << lease.error().message;
  std::thread releasing([&] {
    poll_until([&] { return locks.get({.subject = "job"}).value().waiting == 1; });
    (void)lease->release();
  });
  const auto next = other.acquire({.subject = "job"}, {.ttl = 5s, .wait = 20s});
  releasing.join();
  EXPECT_TRUE(next) << next.error().message;
  EXPECT_EQ(locks.find({}).value().items.size(), 1U);
  // Several at once go another way through the scripts.
  const auto store = open_redis_store(at_server("baton:p%25w"), soon()).value();
  const auto replies = store->apply(
      std::vector{request(Verb::acquire, 2, "DEFAULT:a"), request(Verb::acquire, 3, "DEFAULT:b")},
      soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->at(0).outcome, Outcome::granted);
  EXPECT_EQ(replies->at(1).tokens, std::vector<Token>{replies->at(0).tokens[0] + 1});
}

TEST_F(RedisOpen, missing_rights_are_unauthorized) {
  ask({"ACL", "SETUSER", "nobody", "on", ">pw", "~*", "&*", "+hello", "+time"});
  EXPECT_EQ(refused(at_server("nobody:pw")).code, Code::unauthorized);
  ask({"ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+hello", "+time", "+evalsha",
       "+script|load", "+get", "+mget", "+exists"});
  const auto reader = open_redis(at_server("reader:pw"));
  const auto unwritten = try_apply(*reader, request(Verb::acquire, 1, kJob));
  ASSERT_FALSE(unwritten);
  EXPECT_EQ(unwritten.error().code, Code::unauthorized) << unwritten.error().message;
  ask({"ACL", "SETUSER", "stranger", "on", ">pw", "~other:*", "&*", "+@all"});
  const auto stranger = open_redis(at_server("stranger:pw"));
  const auto foreign = try_apply(*stranger, request(Verb::acquire, 1, kJob));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::unauthorized) << foreign.error().message;
  EXPECT_EQ(ask({"EXISTS", kJobKey}), "0");
}

TEST_F(RedisOpen, a_database_that_is_not_there_is_refused) {
  EXPECT_EQ(refused("redis://" + server_->address() + "/4711").code, Code::bad_store);
}

TEST_F(RedisOpen, a_read_only_replica_is_refused) {
  RedisServer replica(
      {.settings = {{"replicaof", "127.0.0.1 " + std::to_string(server_->port())}}});
  const Error error = refused(replica.url());
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_NE(error.message.find("replica"), std::string::npos);
}

TEST_F(RedisOpen, a_master_that_becomes_a_replica_grants_nothing_and_is_left) {
  RedisServer fallen;
  const auto store = open_redis(fallen.url());
  take(*store, 1);
  fallen.ask({"REPLICAOF", "127.0.0.1", std::to_string(server_->port())});
  const auto reply = try_apply(*store, request(Verb::acquire, 2, "DEFAULT:other"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::unavailable) << reply.error().message;
  EXPECT_TRUE(reply.error().retryable);
  EXPECT_FALSE(reply.error().in_doubt);
  fallen.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(take(*store, 3, "DEFAULT:third").outcome, Outcome::granted);
}

TEST_F(RedisOpen, a_full_server_grants_nothing_but_still_frees) {
  const auto store = open_redis(server_->url());
  take(*store, 1);
  ask({"CONFIG", "SET", "maxmemory", "1"});
  for (const bool plain : {true, false}) {
    Request asked = request(Verb::acquire, 2, "DEFAULT:other");
    if (!plain) asked.change.text = "note";
    const auto full = try_apply(*store, asked);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::unavailable) << full.error().message;
    EXPECT_TRUE(full.error().retryable);
    EXPECT_FALSE(full.error().in_doubt);
    EXPECT_NE(full.error().message.find("memory"), std::string::npos);
  }
  const std::vector<Request> mixed = {request(Verb::release, 1, kJob),
                                      request(Verb::acquire, 2, "DEFAULT:other")};
  const auto replies = store->apply(mixed, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->at(0).outcome, Outcome::done);
  EXPECT_EQ(replies->at(1).outcome, Outcome::busy) << "not now";
  ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(take(*store, 3, "DEFAULT:other").outcome, Outcome::granted);
}

TEST_F(RedisOpen, a_grant_that_no_replica_has_is_not_believed) {
  const auto careful =
      open_redis(server_->url("wait_replicas=1&wait_timeout=100ms&apply_timeout=20s"));
  const auto alone = try_apply(*careful, request(Verb::acquire, 1, kJob));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, Code::unavailable);
  EXPECT_TRUE(alone.error().in_doubt);
  EXPECT_NE(alone.error().message.find("wait_replicas"), std::string::npos);
  // What only ends something need not last.
  EXPECT_EQ(end(*careful, 1).outcome, Outcome::done);
  RedisServer replica({.settings = {{"replicaof", "127.0.0.1 " + std::to_string(server_->port())},
                                    {"repl-diskless-sync-delay", "0"}}});
  const auto patient =
      open_redis(server_->url("wait_replicas=1&wait_timeout=10s&apply_timeout=20s"));
  EXPECT_TRUE(
      poll_until([&] { return try_apply(*patient, request(Verb::acquire, 2, kJob)).has_value(); }));
  EXPECT_EQ(replica.ask({"EXISTS", kJobKey}), "1");
}

TEST_F(RedisOpen, a_status_that_the_user_may_not_see_is_called_unknown) {
  ask({"ACL", "SETUSER", "blind", "on", ">pw", "~{baton:*", "&*", "+@all", "-info", "-config"});
  const auto admin = open_redis_admin(at_server("blind:pw"), soon()).value();
  EXPECT_TRUE(detail(*admin, "memory policy").starts_with("unknown"));
  EXPECT_TRUE(detail(*admin, "persistence").starts_with("unknown"));
}

TEST_F(RedisOpen, the_status_says_what_weakens_the_locks) {
  const auto admin = open_redis_admin(server_->url(), soon()).value();
  EXPECT_EQ(detail(*admin, "memory policy"), "noeviction");
  EXPECT_NE(detail(*admin, "persistence").find("loses locks"), std::string::npos);
  ask({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_NE(detail(*admin, "memory policy").find("set it to noeviction"), std::string::npos);
  ask({"CONFIG", "SET", "maxmemory", "100mb"});
  EXPECT_NE(detail(*admin, "memory policy").find("can vanish"), std::string::npos);
  ask({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  ask({"CONFIG", "SET", "maxmemory", "0"});
  ask({"CONFIG", "SET", "appendonly", "yes"});
  EXPECT_NE(detail(*admin, "persistence").find("last second"), std::string::npos);
  ask({"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_EQ(detail(*admin, "persistence"), "append-only file, appendfsync always");
  ask({"CONFIG", "SET", "appendonly", "no"});
  const auto store = open_redis(server_->url());
  const Token token = take(*store, 1).tokens.at(0);
  EXPECT_EQ(detail(*admin, "names"), "1");
  EXPECT_EQ(detail(*admin, "last token"), std::to_string(token));
  EXPECT_EQ(admin->migrate(soon()).value(), std::pair(1, 1));
}

}  // namespace
}  // namespace baton::test
