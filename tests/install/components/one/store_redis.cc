#include <baton/fence.h>
#include <baton/redis_store.h>

#include <hiredis/hiredis.h>

int main() {
  redisContext* nowhere = redisConnectUnix("/nonexistent/redis");
  const auto fenced = baton::install_fence(nowhere);
  redisFree(nowhere);
  const bool opened = bool(
      baton::open_redis_store("redis://[", baton::system_clock().now() + std::chrono::seconds(5)));
  return !fenced && !opened ? 0 : 1;
}
