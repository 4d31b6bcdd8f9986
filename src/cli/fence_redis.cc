#include <hiredis/hiredis.h>

#include "baton/locks.h"
#include "cli/fence_database.h"
#include "store/redis/fence.h"
#include "store/redis/settings.h"

namespace baton::cli {
namespace {

constexpr timeval kPatience{10, 0};

struct Close {
  void operator()(redisContext* connection) const { redisFree(connection); }
};
using Connection = std::unique_ptr<redisContext, Close>;

class RedisFence final : public FenceDatabase {
 public:
  explicit RedisFence(Connection connection) : connection_(std::move(connection)) {}

  Result<void> install() override { return install_fence(connection_.get()); }
  Result<Token> highest() override { return highest_fenced(connection_.get()); }
  Result<void> check(std::span<const FenceToken> tokens) override {
    return store::redis::look_at_fence(connection_.get(), tokens);
  }

 private:
  Connection connection_;
};

Error refused(const store::redis::Settings& settings, Code code, std::string_view why) {
  return Error{.code = code,
               .message = "cannot connect to " + settings.location + ": " +
                          store::redis::scrub(why, settings),
               .retryable = code == Code::unavailable};
}

Result<void> expect_ok(redisContext* connection, const store::redis::Settings& settings,
                       void* answer) {
  auto* const reply = static_cast<redisReply*>(answer);
  if (reply == nullptr) return refused(settings, Code::unavailable, connection->errstr);
  Result<void> result;
  if (reply->type == REDIS_REPLY_ERROR) {
    const bool about_rights = std::string_view(reply->str).find("PASS") != std::string_view::npos ||
                              std::string_view(reply->str).starts_with("NO");
    result = refused(settings, about_rights ? Code::unauthorized : Code::bad_store, reply->str);
  }
  freeReplyObject(reply);
  return result;
}

}  // namespace

Result<std::unique_ptr<FenceDatabase>> open_redis_fence(const std::string& url) {
  const auto settings = store::redis::parse_settings(url);
  if (!settings) return settings.error();
  if (settings->uses_tls) {
    return Error{.code = Code::unsupported,
                 .message = settings->location +
                            ": the fence of this command has no TLS, only the store has; put a TLS "
                            "tunnel such as stunnel in front of Redis and use redis:// to it"};
  }
  const auto& [host, port] = settings->node;
  Connection connection(port == 0 ? redisConnectUnixWithTimeout(host.c_str(), kPatience)
                                  : redisConnectWithTimeout(host.c_str(), port, kPatience));
  if (connection == nullptr) return refused(*settings, Code::unavailable, "out of memory");
  if (connection->err != 0) return refused(*settings, Code::unavailable, connection->errstr);
  redisSetTimeout(connection.get(), kPatience);
  if (settings->authenticates) {
    auto* const answer =
        redisCommand(connection.get(), "AUTH %b %b", settings->user.data(), settings->user.size(),
                     settings->password.data(), settings->password.size());
    if (auto ok = expect_ok(connection.get(), *settings, answer); !ok) return ok.error();
  }
  auto* const answer = redisCommand(connection.get(), "SELECT %d", settings->database);
  if (auto ok = expect_ok(connection.get(), *settings, answer); !ok) return ok.error();
  return std::unique_ptr<FenceDatabase>(new RedisFence(std::move(connection)));
}

}  // namespace baton::cli
