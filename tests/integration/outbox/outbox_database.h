#pragma once

// An outbox of a test, on SQLite or PostgreSQL, whose events are in any state that is wanted.

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "baton/outbox.h"
#include "outbox/outbox_table.h"
#include "sql/transaction.h"
#include "support/postgres_database.h"
#include "support/temp_dir.h"

namespace baton::test {

class OutboxDatabase {
 public:
  explicit OutboxDatabase(sql::Kind kind) {
    if (kind == sql::Kind::postgres) postgres_ = std::make_unique<Database>();
    connection_ = open();
    on_postgres() ? install_outbox(connection_->postgres()).value()
                  : install_outbox(connection_->sqlite()).value();
  }

  [[nodiscard]] bool on_postgres() const { return postgres_ != nullptr; }
  [[nodiscard]] std::string url() const {
    return postgres_ ? postgres_->url() : "sqlite:" + (dir_ / "data.db").string();
  }
  [[nodiscard]] std::unique_ptr<sql::Connection> open() const {
    return sql::Connection::open(url(), {}, BootClock::now() + patience).value();
  }
  [[nodiscard]] sql::Connection& connection() const { return *connection_; }

  void run(const std::string& sql) const { connection_->query(sql).value(); }
  [[nodiscard]] std::string ask(const std::string& sql) const {
    const auto rows = connection_->query(sql).value();
    return rows.empty() ? "" : rows.front().text(0);
  }

  // How an event is. `next`: NULL, now, later or held.
  struct As {
    std::string status = "PENDING";
    std::string next = "NULL";
    std::string error = {};
    int attempts = 0;
    std::chrono::seconds age{0};
    std::string type = "DocumentUploaded";
    std::string id = {};
  };

  // Gives its id.
  std::string add(const std::string& aggregate, const As& as) const {
    std::string id;
    connection_
        ->transaction([&](sql::Transaction&) -> Result<void> {
          const Event event{
              .id = as.id, .type = as.type, .aggregate = aggregate, .payload = R"({"a":1})"};
          const Outbox outbox({.exchange = "documents", .quiet = true});
          auto added = on_postgres() ? outbox.add(connection_->postgres(), event)
                                     : outbox.add(connection_->sqlite(), event);
          if (!added) return added.error();
          id = *added;
          return {};
        })
        .value();
    const std::string error = as.error.empty() ? "NULL" : "'" + as.error + "'";
    run("UPDATE outbox_events SET status = '" + as.status +
        "', retry_count = " + std::to_string(as.attempts) + ", last_error = " + error +
        ", next_retry_at = " + time(as.next) + ", created_at = " + past(as.age) +
        " WHERE position = (SELECT max(position) FROM outbox_events WHERE"
        " event_id = '" +
        id + "')");
    return id;
  }
  std::string add(const std::string& aggregate) const { return add(aggregate, As{}); }

  // All lanes were read by a relay so long ago.
  void read_lanes(std::chrono::seconds ago) const {
    run("UPDATE outbox_lane SET updated_at = " + past(ago));
  }

  [[nodiscard]] std::string past(std::chrono::seconds ago) const {
    const auto seconds = std::to_string(ago.count());
    return on_postgres()
               ? "clock_timestamp() - interval '" + seconds + " seconds'"
               : "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - 1000 * " + seconds;
  }

  // "PENDING 0 due", "FAILED 10 held", "SENT 0 -".
  [[nodiscard]] std::string state(const std::string& id) const {
    return ask(
        "SELECT status || ' ' || retry_count || ' ' || CASE WHEN next_retry_at IS NULL THEN"
        " '-' WHEN next_retry_at = " +
        time("held") + " THEN 'held' WHEN next_retry_at <= " + past({}) +
        " THEN 'due' ELSE 'later' END FROM outbox_events WHERE event_id = '" + id + "'");
  }

 private:
  [[nodiscard]] std::string time(const std::string& next) const {
    if (next == "held") {
      return on_postgres() ? "timestamptz 'infinity'" : std::to_string(outbox::kSqliteInfinity);
    }
    if (next == "now") return past({});
    if (next == "later") return past(std::chrono::hours(-1));
    return "NULL";
  }

  TempDir dir_{"outbox"};
  std::unique_ptr<Database> postgres_;
  std::unique_ptr<sql::Connection> connection_;
};

}  // namespace baton::test
