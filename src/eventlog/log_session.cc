#include "eventlog/log_session.h"

#include <utility>

#include "eventlog/log_table.h"

namespace baton::eventlog {
namespace {

constexpr const char* kRowColumns =
    " coalesce(p.position, 0), p.status = 'RUNNING', p.attempts, coalesce(p.rebuild_status, ''),"
    " coalesce(p.rebuild_position, 0)";

// The transactions that have opened the log, or a partition or child of it, for writing. Named by
// virtualtransaction.
const sql::Statement& holders_statement() {
  static const sql::Statement statement(
      "WITH RECURSIVE log (relid) AS ("
      "  SELECT 'event_log'::regclass::oid"
      "  UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN log ON i.inhparent = log.relid)"
      " SELECT l.virtualtransaction, coalesce(max(l.pid), 0), bool_or(l.pid IS NULL)"
      " FROM pg_catalog.pg_locks l"
      " WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted"
      " AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d"
      "                   WHERE d.datname = pg_catalog.current_database())"
      " AND l.relation IN (SELECT relid FROM log)"
      " GROUP BY l.virtualtransaction");
  return statement;
}

constexpr const char* kAgeOfSession =
    "SELECT coalesce((extract(epoch FROM clock_timestamp() - xact_start))::bigint, 0)"
    " FROM pg_catalog.pg_stat_activity WHERE pid = $1::int";
constexpr const char* kAgeOfPrepared =
    "SELECT x.gid, (extract(epoch FROM clock_timestamp() - x.prepared))::bigint"
    " FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_prepared_xacts x"
    " ON x.transaction = l.transactionid"
    " WHERE l.locktype = 'transactionid' AND l.pid IS NULL AND l.virtualtransaction = $1";

std::string joined(const std::vector<std::string>& tables) {
  std::string all;
  for (const auto& table : tables) all += (all.empty() ? "" : ",") + table;
  return all;
}

ProcessorRow row_of(const sql::Row& row, std::size_t first) {
  return {.position = row.integer(first),
          .running = row.boolean(first + 1),
          .attempts = static_cast<int>(row.integer(first + 2)),
          .rebuild_status = row.text(first + 3),
          .rebuild_position = row.integer(first + 4)};
}

}  // namespace

std::string_view now_ms(sql::Kind kind) {
  return kind == sql::Kind::postgres ? "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
                                     : "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
}

bool LogSession::is_postgres() const { return connection_->kind() == sql::Kind::postgres; }

Result<std::unique_ptr<LogSession>> LogSession::open(const std::string& url,
                                                     const Registration& registration,
                                                     Millis handler_timeout) {
  auto connection =
      sql::Connection::open(url, {.application = "baton processor " + registration.name,
                                  .create = false,
                                  .lent = true,
                                  .statement_timeout = handler_timeout,
                                  .idle_in_transaction_timeout = handler_timeout + Millis(5'000)});
  if (!connection) return connection.error();
  std::unique_ptr<LogSession> session(new LogSession(std::move(*connection), registration));
  if (auto ok = session->check_log(); !ok) return ok.error();
  if (auto taken = session->take_over(); !taken) return taken.error();
  return session;
}

Result<void> LogSession::check_log() {
  const std::string tail = std::string(" LEFT JOIN event_processor p ON p.name = $1");
  if (!is_postgres()) {
    auto version = installed_version(connection_->sqlite(), schema());
    if (!version) return version.error();
    if (*version == 0) return sql::not_installed(schema(), "this database has no event log");
    if (*version > schema().version) return sql::made_by_newer(schema(), *version);
    look_sql_ = std::string("SELECT coalesce((SELECT max(position) FROM event_log), 0), 1, 0, 0,") +
                kRowColumns + " FROM (SELECT 1)" + tail;
    return {};
  }
  auto log = connection_->query(
      "SELECT to_regclass('event_log_version') IS NOT NULL,"
      " pg_get_serial_sequence(to_regclass('event_log')::text, 'position')");
  if (!log) return log.error();
  if (!log->front().boolean(0) || log->front().null(1)) {
    return sql::not_installed(schema(), "this database has no event log");
  }
  const std::string sequence = log->front().text(1);
  auto good = connection_->query(
      "SELECT seqcache = 1 AND seqincrement = 1 AND NOT seqcycle,"
      " (SELECT max(version) FROM event_log_version)"
      " FROM pg_catalog.pg_sequence WHERE seqrelid = $1::regclass",
      {sequence});
  if (!good) return good.error();
  if (good->front().integer(1) > schema().version) {
    return sql::made_by_newer(schema(), good->front().integer(1));
  }
  if (!good->front().boolean(0)) {
    return Error{.code = Code::bad_store,
                 .message = "the sequence " + sequence +
                            " must have CACHE 1, INCREMENT 1 and NO CYCLE: readers rely on it"};
  }
  look_sql_ = "SELECT s.last_value, s.is_called, pg_is_in_recovery(), pg_backend_pid()," +
              std::string(kRowColumns) + " FROM " + sequence + " s" + tail;
  return {};
}

Result<void> LogSession::take_over() {
  const std::string now(now_ms(connection_->kind()));
  auto transaction = begin();
  if (!transaction) return transaction.error();
  auto registered = transaction->query(
      "INSERT INTO event_processor (name, kind, tables, owner, owner_token, owned_since, alive_at)"
      " VALUES ($1, $2, $3, $4, $5, " +
          now + ", " + now +
          ")"
          " ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, tables = excluded.tables,"
          " owner = excluded.owner, owned_since = CASE WHEN event_processor.owner = excluded.owner"
          " AND event_processor.owner_token = excluded.owner_token THEN event_processor.owned_since"
          " ELSE excluded.owned_since END, owner_token = excluded.owner_token,"
          " alive_at = excluded.alive_at, stalled_by = NULL, stalled_since = NULL",
      {registration_.name, registration_.kind, joined(registration_.tables), registration_.owner,
       static_cast<std::int64_t>(registration_.token)});
  if (!registered) return registered.error();
  auto row = lock_row(*transaction);
  if (!row) return row.error();
  if (auto committed = transaction->commit(); !committed) return committed;
  frontier_ = Frontier(row->position);
  return {};
}

// By TRUNCATE … RESTART IDENTITY, for one, or in a logical copy, which has no sequences. What is
// appended now would be taken for events that have been handled.
Error LogSession::set_back(Position drawn, Position handled) {
  return {.code = Code::bad_store,
          .message = "the sequence of the event log's positions is at " + std::to_string(drawn) +
                     ", but this processor has handled events up to " + std::to_string(handled) +
                     ": set the sequence above all positions that were ever used, or reset the "
                     "processor if the log was emptied"};
}

Result<ProcessorRow> LogSession::look() {
  auto first = connection_->query(look_sql_, {registration_.name});
  if (!first) return first.error();
  const sql::Row& row = first->front();
  const ProcessorRow own = row_of(row, 4);
  if (row.boolean(2)) {
    return Error{.code = Code::unavailable,
                 .message = "the server is a standby: an event log is read on the primary",
                 .retryable = true};
  }
  Look look{.last_value = row.integer(0), .is_called = row.boolean(1), .holders = {}};
  if (is_postgres()) {
    // Behind a pooler the session may be another one, of a server that has restarted meanwhile.
    if (backend_ != 0 && backend_ != row.integer(3)) frontier_ = Frontier(own.position);
    backend_ = row.integer(3);
    // With nothing new and nobody known, the locks say nothing.
    const Position drawn = look.last_value - (look.is_called ? 0 : 1);
    if (drawn < own.position) return set_back(drawn, own.position);
    if (drawn == frontier_.last_drawn() && drawn == frontier_.position()) return own;
    auto holders = connection_->query(holders_statement());
    if (!holders) return holders.error();
    for (const sql::Row& holder : *holders) {
      look.holders.push_back({.transaction = holder.text(0),
                              .pid = static_cast<int>(holder.integer(1)),
                              .prepared = holder.boolean(2),
                              .name = {},
                              .age_ms = 0});
    }
  }
  frontier_.look(look);
  return own;
}

Result<std::string> LogSession::stalled_by() {
  const auto& holder = frontier_.stalled_by();
  if (!holder) return std::string();
  auto rows = holder->prepared
                  ? connection_->query(kAgeOfPrepared, {holder->transaction})
                  : connection_->query(kAgeOfSession, {static_cast<std::int64_t>(holder->pid)});
  if (!rows) return rows.error();
  const std::size_t age = holder->prepared ? 1 : 0;
  const std::string seconds =
      rows->empty() ? std::string() : ", open for " + rows->front().text(age) + " s";
  if (!holder->prepared) return "pid " + std::to_string(holder->pid) + seconds;
  const std::string name = rows->empty() ? holder->transaction : "'" + rows->front().text(0) + "'";
  return "prepared transaction " + name + seconds;
}

Result<sql::Transaction> LogSession::begin() {
  auto transaction = sql::Transaction::begin(*connection_);
  if (!transaction) return transaction.error();
  auto fenced = transaction->fence(std::span<const FenceToken>(registration_.fence));
  if (!fenced) return fenced.error();
  return transaction;
}

Result<ProcessorRow> LogSession::lock_row(sql::Transaction& transaction) {
  auto rows = transaction.query(std::string("SELECT") + kRowColumns +
                                    " FROM event_processor p WHERE p.name = $1" +
                                    (is_postgres() ? " FOR UPDATE" : ""),
                                {registration_.name});
  if (!rows) return rows.error();
  if (rows->empty()) {
    return Error{.code = Code::bad_store,
                 .message = "the processor's row in event_processor is gone",
                 .retryable = true};
  }
  return row_of(rows->front(), 0);
}

Result<std::vector<LoggedEvent>> LogSession::read(sql::Transaction& transaction, Position after,
                                                  Position up_to, std::size_t limit) {
  static const std::string kTail =
      " FROM event_log WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3";
  static const sql::Statement postgres("SELECT " + std::string(kPostgresColumns) + kTail);
  static const sql::Statement sqlite("SELECT " + std::string(kSqliteColumns) + kTail);
  auto rows = transaction.query(is_postgres() ? postgres : sqlite,
                                {after, up_to, static_cast<std::int64_t>(limit)});
  if (!rows) return rows.error();
  return logged_events(*rows);
}

Result<void> LogSession::save(sql::Transaction& transaction, Position position) {
  auto saved = transaction.query(
      "UPDATE event_processor SET position = $2, attempts = 0, last_error = NULL,"
      " error_position = NULL, failed_at = NULL, alive_at = " +
          std::string(now_ms(connection_->kind())) + " WHERE name = $1",
      {registration_.name, position});
  if (!saved) return saved.error();
  return {};
}

Result<void> LogSession::save_rebuild(sql::Transaction& transaction, Position position) {
  auto saved = transaction.query("UPDATE event_processor SET rebuild_position = $2 WHERE name = $1",
                                 {registration_.name, position});
  if (!saved) return saved.error();
  return {};
}

Result<void> LogSession::fenced(const std::string& sql, const sql::Values& values) {
  auto transaction = begin();
  if (!transaction) return transaction.error();
  if (auto done = transaction->query(sql, values); !done) return done.error();
  return transaction->commit();
}

Result<void> LogSession::save_failure(Position position, int attempts, bool pause,
                                      const std::string& error) {
  return fenced(
      "UPDATE event_processor SET attempts = $2, last_error = $3, error_position = $4,"
      " failed_at = " +
          std::string(now_ms(connection_->kind())) + (pause ? ", status = 'PAUSED'" : "") +
          " WHERE name = $1 AND status = 'RUNNING' AND position < $4",
      {registration_.name, std::int64_t{attempts}, error, position});
}

Result<void> LogSession::fail_rebuild(const std::string& error) {
  return fenced(
      "UPDATE event_processor SET rebuild_status = 'FAILED', rebuild_error = $2"
      " WHERE name = $1 AND rebuild_status IS NOT NULL",
      {registration_.name, error});
}

Result<void> LogSession::heartbeat(const std::string& stalled_by, Millis stalled_for) {
  const std::string now(now_ms(connection_->kind()));
  sql::Values values = {registration_.name, std::monostate(), std::int64_t{stalled_for.count()}};
  if (!stalled_by.empty()) values[1] = stalled_by;
  const std::string by = is_postgres() ? "$2::text" : "$2";
  const std::string since = is_postgres() ? "$3::bigint" : "$3";
  return fenced("UPDATE event_processor SET alive_at = " + now + ", stalled_by = " + by +
                    ", stalled_since = CASE WHEN " + by + " IS NOT NULL THEN " + now + " - " +
                    since + " END WHERE name = $1",
                values);
}

}  // namespace baton::eventlog
