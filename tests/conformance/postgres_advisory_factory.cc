#include "harness.h"
#include "store/postgres_advisory/advisory_store.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

// A database of its own on the shared server, emptied before each use.
class PostgresAdvisoryFactory final : public StoreFactory {
 public:
  PostgresAdvisoryFactory() {
    const std::string url = database_.url();
    url_ = "postgres-advisory" + url.substr(url.find(':')) + "?baton_max_waiters=64";
    open_postgres_advisory_admin(url_, soon()).value()->migrate(soon()).value();
  }

  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    return open(std::move(time), url_);
  }
  std::unique_ptr<LockStore> fresh_with_long_limits(std::shared_ptr<ManualTime> time) override {
    return open(std::move(time), url_ + "&baton_apply_timeout=30s");
  }
  [[nodiscard]] int model_sequences() const override { return 100; }

 private:
  std::unique_ptr<LockStore> open(std::shared_ptr<ManualTime> time, const std::string& url) {
    // The sessions of the store before are closed, but the server may not have noticed yet.
    Session(database_.url())
        .sql(
            "SET client_min_messages = error;"
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid();"
            "DELETE FROM baton_advisory.term; DELETE FROM baton_advisory.note;"
            "DELETE FROM baton_advisory.waiter");
    return store::open_postgres_advisory_store({.url = url, .now = [time] { return time->now(); }},
                                               soon())
        .value();
  }

  Database database_;
  std::string url_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<PostgresAdvisoryFactory>(); }

}  // namespace baton::test
