#include <stdexcept>

#include <hiredis/hiredis.h>

#include "baton/redis_store.h"
#include "harness.h"
#include "store/redis/redis_store.h"
#include "support/redis_server.h"

namespace baton::test {
namespace {

// A server of its own, emptied before each use.
class RedisFactory final : public StoreFactory {
 public:
  RedisFactory() : admin_(redisConnect("127.0.0.1", server_.port())) {
    if (admin_ == nullptr || admin_->err != 0) throw std::runtime_error("cannot reach Redis");
  }
  ~RedisFactory() override { redisFree(admin_); }
  RedisFactory(const RedisFactory&) = delete;
  RedisFactory& operator=(const RedisFactory&) = delete;

  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    freeReplyObject(redisCommand(admin_, "FLUSHALL"));
    if (admin_->err != 0) throw std::runtime_error(admin_->errstr);
    // Names are busy all the time here, and the fast paths are to be tested all the same.
    return store::open_redis_store({.url = server_.url(),
                                    .now = [time] { return time->now(); },
                                    .contended_for = Millis{0}},
                                   soon())
        .value();
  }
  bool damage(const std::string& key, const std::string& text) override {
    const auto colon = key.find(':');
    const std::string name = "{baton:" + key.substr(0, colon) + "}" + key.substr(colon);
    freeReplyObject(
        redisCommand(admin_, "SET %b %b", name.data(), name.size(), text.data(), text.size()));
    if (admin_->err != 0) throw std::runtime_error(admin_->errstr);
    return true;
  }
  std::unique_ptr<StoreAdmin> admin() override {
    return open_redis_admin(server_.url(), soon()).value();
  }
  [[nodiscard]] int model_sequences() const override { return 4'000; }

 private:
  RedisServer server_;
  redisContext* admin_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<RedisFactory>(); }

}  // namespace baton::test
