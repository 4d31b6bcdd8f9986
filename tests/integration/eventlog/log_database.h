#pragma once

// A database with an event log, of either kind, and statements beside what is tested.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baton/event_log.h"
#include "baton/outbox.h"
#include "sql/connection.h"
#include "support/postgres_database.h"
#include "support/temp_dir.h"

namespace baton::test {

enum class DatabaseKind : std::uint8_t { postgres, sqlite };

class LogDatabase {
 public:
  explicit LogDatabase(DatabaseKind kind) {
    if (kind == DatabaseKind::postgres) database_ = std::make_unique<Database>();
    url_ = database_ ? database_->url() : "sqlite:" + (directory_.path() / "log.db").string();
    install(*connect());
  }

  static void install(sql::Connection& connection) {
    if (connection.postgres() != nullptr) {
      install_event_log(connection.postgres()).value();
      install_outbox(connection.postgres()).value();
    } else {
      install_event_log(connection.sqlite()).value();
      install_outbox(connection.sqlite()).value();
    }
  }

  [[nodiscard]] std::unique_ptr<sql::Connection> connect() const {
    return sql::Connection::open(url_).value();
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  TempDir directory_;
  std::unique_ptr<Database> database_;
  std::string url_;
};

inline Result<Appended> append(sql::Connection& connection, const std::string& stream,
                               const std::vector<Event>& events,
                               std::optional<std::int64_t> expected = {}) {
  const EventLog log;
  if (connection.postgres() != nullptr) {
    return log.append(connection.postgres(), stream, events, expected);
  }
  return log.append(connection.sqlite(), stream, events, expected);
}

// In a transaction of its own.
inline Appended append_one(sql::Connection& connection, const std::string& stream,
                           const std::string& payload = "{}") {
  Appended appended;
  connection
      .transaction([&](sql::Transaction&) -> Result<void> {
        auto done = append(connection, stream, {{.type = "Added", .payload = payload}});
        if (!done) return done.error();
        appended = *done;
        return {};
      })
      .value();
  return appended;
}

inline std::vector<LoggedEvent> read(sql::Connection& connection, const std::string& stream,
                                     const ReadStream& what = {}) {
  const EventLog log;
  return connection.postgres() != nullptr ? log.read(connection.postgres(), stream, what).value()
                                          : log.read(connection.sqlite(), stream, what).value();
}

}  // namespace baton::test
