#pragma once

// What the tests of the Redis store share: requests that are as short as what they say.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "baton/redis_store.h"
#include "store/redis/redis_store.h"
#include "support/redis_server.h"

namespace baton::test {

using namespace std::chrono_literals;

inline Deadline soon() { return BootClock::now() + 30s; }

inline std::unique_ptr<LockStore> open_redis(const std::string& url) {
  return open_redis_store(url, soon()).value();
}

inline Request request(Verb verb, std::uint64_t grant, const std::string& key, Mode mode = Mode::X,
                       Millis queue_ttl = Millis{0}) {
  Request made;
  made.verb = verb;
  made.grant = {0xBA70, grant};
  made.targets = {{key, mode}};
  made.predicate = "holding";
  made.owner = "node-" + std::to_string(grant);
  made.channel = "process-" + std::to_string(grant);
  made.ttl = 10s;
  made.queue_ttl = queue_ttl;
  made.claim_within = 1s;
  return made;
}

inline Result<Reply> try_apply(LockStore& store, const Request& request,
                               Deadline deadline = soon()) {
  auto replies = store.apply({&request, 1}, deadline);
  if (!replies) return replies.error();
  return std::move(replies->at(0));
}

inline Reply apply(LockStore& store, const Request& request) {
  auto reply = try_apply(store, request);
  EXPECT_TRUE(reply) << reply.error().message;
  return reply ? *reply : Reply{};
}

inline const std::string kJob = "DEFAULT:job";
inline const std::string kJobKey = "{baton:DEFAULT}:job";

inline Reply take(LockStore& store, std::uint64_t grant, const std::string& key = kJob) {
  return apply(store, request(Verb::acquire, grant, key));
}
inline Reply end(LockStore& store, std::uint64_t grant, const std::string& key = kJob) {
  return apply(store, request(Verb::release, grant, key));
}

// A server of its own for each test program, emptied for each test.
class RedisTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<RedisServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { server_->ask({"FLUSHALL"}); }

  static std::string ask(const std::vector<std::string>& words) { return server_->ask(words); }

  static inline std::unique_ptr<RedisServer> server_;
};

}  // namespace baton::test
