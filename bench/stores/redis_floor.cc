#include "stores/redis_floor.h"

#include <memory>
#include <stdexcept>
#include <string>

#include <hiredis/hiredis.h>

namespace baton::bench {
namespace {

constexpr const char* kAcquire =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
    "return redis.call('INCR', KEYS[2]) end return 0";
constexpr const char* kRelease =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
constexpr const char* kHolder = "6f1c0a529a574f0e8d366f0d8a3c7b11";

class RawRedis {
 public:
  explicit RawRedis(int port) : context_(redisConnect("127.0.0.1", port)) {
    if (context_ == nullptr || context_->err != 0) throw std::runtime_error("cannot reach Redis");
    acquire_ = load(kAcquire);
    release_ = load(kRelease);
  }
  ~RawRedis() { redisFree(context_); }
  RawRedis(const RawRedis&) = delete;
  RawRedis& operator=(const RawRedis&) = delete;

  void pair(const std::string& name) {
    const char* acquire[] = {"EVALSHA",     acquire_.c_str(), "2",    name.c_str(),
                             "floor_token", kHolder,          "30000"};
    const char* release[] = {"EVALSHA", release_.c_str(), "1", name.c_str(), kHolder};
    if (number(acquire, 7) == 0) throw std::runtime_error("not granted");
    if (number(release, 5) == 0) throw std::runtime_error("not held");
  }

 private:
  std::string load(const char* script) {
    auto* reply = static_cast<redisReply*>(redisCommand(context_, "SCRIPT LOAD %s", script));
    if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
      throw std::runtime_error("cannot load");
    }
    std::string sha(reply->str, reply->len);
    freeReplyObject(reply);
    return sha;
  }
  long long number(const char** words, int count) {
    auto* reply = static_cast<redisReply*>(redisCommandArgv(context_, count, words, nullptr));
    if (reply == nullptr || reply->type != REDIS_REPLY_INTEGER) throw std::runtime_error("failed");
    const long long value = reply->integer;
    freeReplyObject(reply);
    return value;
  }

  redisContext* context_;
  std::string acquire_;
  std::string release_;
};

}  // namespace

std::vector<Step> redis_floor(int port, int count, int names_each) {
  std::vector<Step> steps;
  for (int caller = 0; caller < count; ++caller) {
    const auto session = std::make_shared<RawRedis>(port);
    std::vector<std::string> names;
    for (int i = 0; i < names_each; ++i) {
      names.push_back("floor:bench:" + std::to_string(caller) + ":" + std::to_string(i));
    }
    steps.emplace_back([session, names, next = std::size_t{0}]() mutable {
      session->pair(names[next++ % names.size()]);
    });
  }
  return steps;
}

}  // namespace baton::bench
