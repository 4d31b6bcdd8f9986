#include "store/postgres/postgres_store.h"

#include <algorithm>

#include "core/apply.h"
#include "store/common/contained.h"
#include "store/postgres/batch.h"
#include "store/postgres/listener.h"
#include "store/postgres/pool.h"
#include "store/postgres/schema.h"

namespace baton::store {
namespace {

using namespace postgres;  // NOLINT(google-build-using-namespace): its own parts

class PostgresStore final : public LockStore {
 public:
  PostgresStore(Settings settings, PostgresOptions options)
      : settings_(std::move(settings)),
        options_(std::move(options)),
        hints_(options_.contended_for),
        pool_(settings_),
        listener_(settings_,
                  {.now = [this] { return test_clock(); }, .drop_wakeups = options_.drop_wakeups}) {
  }

  Result<void> open(Deadline deadline) {
    auto connection = Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    const auto pooled = (*connection)->behind_transaction_pool(deadline);
    if (!pooled) return pooled.error();
    if (*pooled) {
      return Error{.code = Code::bad_store,
                   .message = settings_.location +
                              " is behind a transaction-pooling proxy, which would lose prepared "
                              "statements and notifications: give the server's own address, or a "
                              "pool in session mode"};
    }
    if (auto checked = check_schema(**connection, settings_, deadline); !checked) return checked;
    pool_.adopt(std::move(*connection));
    return {};
  }

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    return contained(settings_.location, [&]() -> Result<std::vector<Reply>> {
      BatchRun run(batch, test_clock(), settings_, hints_);
      if (run.nothing_to_send()) return run.replies();
      auto connection = pool_.take(run.lane(), std::min(deadline, run.limit()));
      if (!connection) return connection.error();
      return run.send(**connection, deadline);
    });
  }

  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return contained(settings_.location, [&]() -> Result<Page<LockInfo>> {
      auto connection = pool_.take(Lane::requests, deadline);
      if (!connection) return connection.error();
      return find_on(**connection, query, deadline);
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
    can.clock = "the database server (clock_timestamp)";
    return can;
  }

 private:
  [[nodiscard]] TestClock test_clock() const {
    return options_.now ? TestClock(options_.now()) : TestClock{};
  }

  Result<Page<LockInfo>> find_on(Connection& connection, const Query& query, Deadline deadline) {
    constexpr std::size_t kRows = 500;
    constexpr std::int64_t kAllWaiters = 1'000'000;
    const bool by_somebody = !query.predicate.empty() || query.mode || !query.owner.empty();
    const auto rows_wanted = static_cast<std::int32_t>(std::min(query.limit, kRows - 1) + 1);
    const std::size_t most = std::clamp<std::size_t>(query.max_waiters, 1, kAllWaiters);
    Page<LockInfo> page;
    std::string after = query.after;
    for (;;) {
      const std::string prefix = core::key_prefix(query);
      const std::int64_t max_waiters = by_somebody ? kAllWaiters : static_cast<std::int64_t>(most);
      const Params params = bind(StatementId::find,
                                 {{"prefix", std::string_view(prefix)},
                                  {"after", std::string_view(after)},
                                  {"idle", query.idle},
                                  {"max_rows", rows_wanted},
                                  {"max_waiters", max_waiters}},
                                 test_clock());
      const auto limit = std::min(deadline, BootClock::now() + settings_.apply_limit);
      const auto rows = connection.run(statement(StatementId::find), params, limit);
      if (!rows) {
        Error error = rows.error();
        error.in_doubt = false;  // it only reads
        return error;
      }
      for (int row = 0; row < rows->size(); ++row) {
        LockInfo info = lock_info(*rows, row);
        after = info.key;
        if (!core::matches(query, info)) continue;
        if (page.items.size() == query.limit) {
          page.next = page.items.empty() ? std::string() : page.items.back().key;
          return page;
        }
        if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
        page.items.push_back(std::move(info));
      }
      if (rows->size() < rows_wanted) return page;
    }
  }

  const Settings settings_;
  const PostgresOptions options_;
  NameHints hints_;
  Pool pool_;
  Listener listener_;
};

}  // namespace

Result<std::unique_ptr<LockStore>> open_postgres_store(PostgresOptions options, Deadline deadline) {
  auto settings = parse_settings(options.url);
  if (!settings) return settings.error();
  auto store = std::make_unique<PostgresStore>(std::move(*settings), std::move(options));
  if (auto opened = store->open(deadline); !opened) return opened.error();
  return std::unique_ptr<LockStore>(std::move(store));
}

}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<LockStore>> open_postgres_store(std::string_view url, Deadline deadline) {
  return store::open_postgres_store({.url = std::string(url)}, deadline);
}

}  // namespace baton
