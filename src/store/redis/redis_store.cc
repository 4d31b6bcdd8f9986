#include "store/redis/redis_store.h"

#include "store/common/contained.h"
#include "store/redis/batch.h"
#include "store/redis/find.h"
#include "store/redis/listener.h"

namespace baton::store {
namespace {

using namespace redis;  // NOLINT(google-build-using-namespace): its own parts

class RedisStore final : public LockStore {
 public:
  RedisStore(Settings settings, RedisOptions options)
      : settings_(std::move(settings)),
        options_(std::move(options)),
        context_(settings_, options_.contended_for),
        pool_(settings_.location, settings_),
        listener_(settings_, context_.layout) {}

  Result<void> open(Deadline deadline) {
    auto connections = pool_.take(Lane::requests, deadline);
    if (!connections) return connections.error();
    auto connection = Connection::open(settings_, settings_.node, deadline);
    if (!connection) return connection.error();
    if ((*connection)->is_replica()) {
      return Error{
          .code = Code::bad_store,
          .message = settings_.location + " is a read-only replica: give the master's address"};
    }
    context_.clustered = (*connection)->clustered();
    if (auto loaded = context_.scripts.load(**connection, settings_, deadline); !loaded) {
      return loaded;
    }
    (*connections)->adopt(std::move(*connection));
    return {};
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    const Instant entered = BootClock::now();
    return contained(settings_.location, [&]() -> Result<std::vector<Reply>> {
      BatchRun run(batch, at(), context_);
      if (run.nothing_to_send()) return run.replies();
      if (run.lane() == Lane::renewals) {
        if (auto renewed = renew_briefly(run, entered, deadline)) return std::move(*renewed);
      }
      auto connections = pool_.take(run.lane(), deadline);
      if (!connections) return connections.error();
      return run.send(**connections, entered, deadline);
    });
  }

  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return contained(settings_.location, [&]() -> Result<Page<LockInfo>> {
      auto connections = pool_.take(Lane::requests, deadline);
      if (!connections) return connections.error();
      return redis::find(context_, **connections, query, at(), deadline);
    });
  }

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return listener_.watch(channel, sink);
  }

  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can;
    can.parallel = 2;
    can.batched_gets = true;
    can.apply_limit = settings_.apply_limit;
    can.clock = "the Redis server (TIME)";
    return can;
  }

 private:
  // A lease may run out while its connection is opened. So one try that is short, and then a
  // connection for requests; nothing if none of those is open either.
  std::optional<Result<std::vector<Reply>>> renew_briefly(BatchRun& run, Instant entered,
                                                          Deadline deadline) {
    {
      auto own = pool_.take(Lane::renewals, deadline);
      if (!own) return own.error();
      (*own)->set_brief(true);
      auto replies = run.send(**own, entered, deadline);
      (*own)->set_brief(false);
      if (replies || !run.unconnected()) return replies;
    }
    auto shared = pool_.take(Lane::shared, deadline);
    if (!shared) return std::nullopt;
    return run.send(**shared, entered, deadline);
  }

  [[nodiscard]] std::optional<core::StoreTime> at() const {
    return options_.now ? std::optional(options_.now()) : std::nullopt;
  }

  const Settings settings_;
  const RedisOptions options_;
  StoreContext context_;
  Pool pool_;
  Listener listener_;
};

}  // namespace

Result<std::unique_ptr<LockStore>> open_redis_store(RedisOptions options, Deadline deadline) {
  auto settings = redis::parse_settings(options.url);
  if (!settings) return settings.error();
  auto store = std::make_unique<RedisStore>(std::move(*settings), std::move(options));
  if (auto opened = store->open(deadline); !opened) return opened.error();
  return std::unique_ptr<LockStore>(std::move(store));
}

}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<LockStore>> open_redis_store(std::string_view url, Deadline deadline) {
  return store::open_redis_store({.url = std::string(url)}, deadline);
}

}  // namespace baton
