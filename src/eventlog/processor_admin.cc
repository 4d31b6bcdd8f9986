#include <utility>

#include "baton/processors.h"
#include "core/bad_request.h"
#include "eventlog/log_session.h"
#include "eventlog/log_table.h"
#include "eventlog/view_tables.h"
#include "sql/connection.h"
#include "sql/transaction.h"

namespace baton {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

class Admin final : public ProcessorAdmin {
 public:
  explicit Admin(std::unique_ptr<sql::Connection> connection)
      : connection_(std::move(connection)),
        is_postgres_(connection_->kind() == sql::Kind::postgres) {}

  Result<void> install() override {
    if (is_postgres_) return install_event_log(connection_->postgres());
    return install_event_log(connection_->sqlite());
  }

  Result<std::vector<ProcessorState>> list(std::string_view name) override {
    const std::string now(eventlog::now_ms(connection_->kind()));
    const std::string created =
        is_postgres_ ? "(extract(epoch FROM e.created_at) * 1000)::bigint" : "e.created_at";
    auto rows = connection_->query(
        "SELECT p.name, p.kind, p.status, p.tables, p.position,"
        " coalesce((SELECT max(position) FROM event_log), 0),"
        " (SELECT count(*) FROM (SELECT 1 FROM event_log e WHERE e.position > p.position"
        "  LIMIT 100000) behind),"
        " coalesce((SELECT " +
            now + " - " + created +
            " FROM event_log e"
            "  WHERE e.position > p.position ORDER BY e.position LIMIT 1), 0),"
            " coalesce(p.owner, ''), coalesce(p.owner_token, 0), coalesce(" +
            now + " - p.owned_since, 0), coalesce(" + now +
            " - p.alive_at, 0), p.attempts,"
            " coalesce(p.last_error, ''), coalesce(p.error_position, 0),"
            " coalesce(p.rebuild_status, ''), coalesce(p.rebuild_position, 0),"
            " coalesce(p.rebuild_error, ''), coalesce(p.stalled_by, ''),"
            " coalesce(" +
            now +
            " - p.stalled_since, 0)"
            " FROM event_processor p WHERE p.name = $1 OR $1 = '' ORDER BY p.name",
        {std::string(name)});
    if (!rows) return explained(rows.error());
    if (rows->empty() && !name.empty()) return unknown(std::string(name));
    std::vector<ProcessorState> states;
    for (const sql::Row& row : *rows) {
      states.push_back({.name = row.text(0),
                        .kind = row.text(1),
                        .status = row.text(2),
                        .tables = split(row.text(3)),
                        .position = row.integer(4),
                        .head = row.integer(5),
                        .lag = row.integer(6),
                        .oldest_age = Millis(row.integer(7)),
                        .owner = row.text(8),
                        .owner_token = static_cast<Token>(row.integer(9)),
                        .owned_for = Millis(row.integer(10)),
                        .seen_ago = Millis(row.integer(11)),
                        .attempts = static_cast<int>(row.integer(12)),
                        .last_error = row.text(13),
                        .error_position = row.integer(14),
                        .rebuild_status = row.text(15),
                        .rebuild_position = row.integer(16),
                        .rebuild_error = row.text(17),
                        .stalled_by = row.text(18),
                        .stalled_for = Millis(row.integer(19))});
    }
    return states;
  }

  Result<void> pause(const std::string& name) override {
    return change(name, "status = 'PAUSED'", Tables::leave);
  }

  Result<void> resume(const std::string& name) override {
    return change(name, "status = 'RUNNING', attempts = 0", Tables::leave);
  }

  Result<void> reset(const std::string& name) override {
    return change(name,
                  "position = 0, attempts = 0, last_error = NULL, error_position = NULL,"
                  " rebuild_status = NULL, rebuild_position = NULL, rebuild_error = NULL",
                  Tables::empty);
  }

  Result<void> rebuild(const std::string& name) override {
    return change(name, "rebuild_status = 'REQUESTED', rebuild_position = 0, rebuild_error = NULL",
                  Tables::needed);
  }

 private:
  enum class Tables : std::uint8_t { leave, empty, needed };

  static Error unknown(const std::string& name) {
    return bad_request("there is no processor " + name +
                       "; processors are known once they have run");
  }

  [[nodiscard]] Error explained(Error error) {
    const bool missing = is_postgres_ ? connection_->sqlstate() == "42P01"
                                      : error.message.find("no such table") != std::string::npos;
    if (!missing) return error;
    return sql::not_installed(eventlog::schema(), "this database has no event log");
  }

  Result<void> change(const std::string& name, const std::string& set, Tables tables) {
    return connection_->transaction([&](sql::Transaction& transaction) -> Result<void> {
      auto row = transaction.query(
          "UPDATE event_processor SET " + set + " WHERE name = $1 RETURNING kind, tables", {name});
      if (!row) return explained(row.error());
      if (row->empty()) return unknown(name);
      const auto of_view = split(row->front().text(1));
      if (tables == Tables::needed && of_view.empty()) {
        return bad_request(row->front().text(0) == "view"
                               ? "the view " + name + " has not said which tables are its own"
                               : name +
                                     " is a publisher, and what it told others cannot be built "
                                     "again; reset makes it tell everything again");
      }
      if (tables == Tables::empty) return eventlog::empty_tables(transaction, of_view);
      return {};
    });
  }

  std::unique_ptr<sql::Connection> connection_;
  const bool is_postgres_;
};

}  // namespace

Result<std::unique_ptr<ProcessorAdmin>> ProcessorAdmin::open(const std::string& database) {
  auto connection =
      sql::Connection::open(database, {.application = "baton processor admin", .create = false});
  if (!connection) return connection.error();
  return std::unique_ptr<ProcessorAdmin>(std::make_unique<Admin>(std::move(*connection)));
}

}  // namespace baton
