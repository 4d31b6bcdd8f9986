#include "inbox/tables.h"

#include <utility>

#include "event/headers.h"
#include "inbox/inbox_table.h"

namespace baton::inbox {
namespace {

// Both databases understand the same statements but for a few words: [at $3] is the time in $3
// milliseconds, [age $3] how long ago the first failure was then, [lock] and [skip] lock rows,
// which SQLite does with the whole file.
sql::Statement statement(sql::Kind kind, std::string text) {
  const bool postgres = kind == sql::Kind::postgres;
  const auto replace = [&](std::string_view what, std::string_view with) {
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
      text.replace(at, what.size(), with);
    }
  };
  replace("[lock]", postgres ? "FOR UPDATE" : "");
  replace("[skip]", postgres ? "FOR UPDATE SKIP LOCKED" : "");
  for (auto at = text.find("[age $"); at != text.npos; at = text.find("[age $", at)) {
    const auto end = text.find(']', at);
    const std::string then = "[at " + text.substr(at + 5, end - at - 5) + "]";
    text.replace(at, end - at + 1,
                 postgres ? "(extract(epoch FROM " + then + " - first_failed_at) * 1000)::bigint"
                          : then + " - first_failed_at");
  }
  for (auto at = text.find("[at $"); at != text.npos; at = text.find("[at $", at)) {
    const auto end = text.find(']', at);
    const std::string value = text.substr(at + 4, end - at - 4);
    text.replace(
        at, end - at + 1,
        postgres ? "(clock_timestamp() + " + value + "::bigint * interval '1 ms')"
                 : "(CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + " + value + ")");
  }
  return sql::Statement(text);
}

Result<void> without_rows(const Result<sql::Rows>& rows) {
  if (!rows) return rows.error();
  return {};
}

Result<Trouble> trouble_in(const sql::Row& row, std::size_t column) {
  const auto status = parse_status(row.text(column));
  if (!status) {
    return Error{.code = Code::bad_store,
                 .message = "inbox_events has a row with the status " + row.text(column)};
  }
  return Trouble{.status = *status,
                 .retries = static_cast<int>(row.integer(column + 1)),
                 .claim = row.integer(column + 2)};
}

constexpr const char* kKept =
    "SELECT status, retry_count, claim, event_id, last_error, exchange, routing_key,"
    " message_id, payload, content_type, headers, [age $2] FROM inbox_events ";
// decision.h, holds(). What is no event is of no aggregate.
constexpr const char* kHolds = "status IN ('RETRY', 'HELD', 'DEAD') AND raw IS NULL ";
constexpr const char* kSettled = "outcome IN ('done', 'rejected', 'discarded')";

}  // namespace

struct Tables::Statements {
  explicit Statements(sql::Kind kind)
      : enter(statement(kind, kind == sql::Kind::postgres
                                  ? "INSERT INTO processed_events (consumer, event_id, outcome)"
                                    " SELECT $1, id, $3 FROM unnest($2::uuid[]) id"
                                    " ON CONFLICT DO NOTHING"
                                    " RETURNING event_id, pg_current_xact_id()"
                                  : "INSERT INTO processed_events (consumer, event_id, outcome)"
                                    " VALUES ($1, $2, $3)"
                                    " ON CONFLICT DO NOTHING RETURNING event_id, 0")),
        set_outcome(statement(kind,
                              "UPDATE processed_events SET outcome = $3, processed_at = [at $4]"
                              " WHERE consumer = $1 AND event_id = $2")),
        leave(
            statement(kind, "DELETE FROM processed_events WHERE consumer = $1 AND event_id = $2")),
        lock(statement(kind,
                       "SELECT status, retry_count, claim FROM inbox_events"
                       " WHERE consumer = $1 AND event_id = $2 [lock]")),
        in_trouble(
            statement(kind, std::string("SELECT DISTINCT aggregate_id FROM inbox_events"
                                        " WHERE consumer = $1 AND aggregate_id ") +
                                (kind == sql::Kind::postgres ? "= ANY($2::text[])" : "= $2") +
                                " AND " + kHolds)),
        lock_due(statement(kind, std::string(kKept) + "WHERE consumer = $1 AND status = 'RETRY'"
                                                      " AND next_retry_at <= [at $2]"
                                                      " ORDER BY next_retry_at LIMIT 1 [skip]")),
        lock_due_head(statement(
            kind, std::string(kKept) +
                      "AS mine WHERE consumer = $1 AND status = 'RETRY'"
                      " AND next_retry_at <= [at $2] AND (raw IS NOT NULL OR NOT EXISTS ("
                      "SELECT 1 FROM inbox_events WHERE consumer = $1"
                      " AND aggregate_id = mine.aggregate_id AND arrival < mine.arrival AND " +
                      kHolds + ")) ORDER BY next_retry_at LIMIT 1 [skip]")),
        // From one aggregate to the next, so that what is held behind a DEAD head costs nothing.
        lock_held_head(statement(
            kind, std::string("WITH RECURSIVE held(aggregate_id) AS ("
                              "SELECT min(aggregate_id) FROM inbox_events"
                              " WHERE consumer = $1 AND status = 'HELD'"
                              " UNION ALL "
                              "SELECT (SELECT min(aggregate_id) FROM inbox_events WHERE consumer ="
                              " $1 AND status = 'HELD' AND aggregate_id > held.aggregate_id)"
                              " FROM held WHERE aggregate_id IS NOT NULL) ") +
                      kKept +
                      "WHERE consumer = $1 AND status = 'HELD' AND arrival IN ("
                      "SELECT (SELECT arrival FROM inbox_events WHERE consumer = $1"
                      " AND aggregate_id = held.aggregate_id AND " +
                      kHolds +
                      "ORDER BY arrival LIMIT 1) FROM held WHERE aggregate_id IS NOT NULL)"
                      " ORDER BY arrival LIMIT 1 [skip]")),
        insert(statement(
            kind,
            "INSERT INTO inbox_events (consumer, queue, status, retry_count, next_retry_at,"
            " last_error, claim, lane, position, event_id, type, aggregate_type, aggregate_id,"
            " exchange, routing_key, payload, headers, correlation_id, causation_id, traceparent,"
            " version, message_id, content_type, raw)"
            " VALUES ($1, $2, $3, $4, CASE WHEN $3 = 'RETRY' THEN [at $5] END, $6, $7, $8, $9, $10,"
            " $11, $12, $13, $14, $15, $16, $17, nullif($18, ''), nullif($19, ''), nullif($20, ''),"
            " $21, $22, $23, $24)")),
        update(statement(kind,
                         "UPDATE inbox_events SET status = $3, retry_count = $4, claim = $5,"
                         " next_retry_at = CASE WHEN $3 = 'RETRY' THEN [at $6] END,"
                         " last_error = coalesce(nullif($7, ''), last_error),"
                         " last_failed_at = CASE WHEN $7 = '' THEN last_failed_at ELSE [at $8] END"
                         " WHERE consumer = $1 AND event_id = $2")),
        erase(statement(kind, "DELETE FROM inbox_events WHERE consumer = $1 AND event_id = $2")),
        old(statement(kind, std::string("SELECT event_id FROM processed_events"
                                        " WHERE consumer = $1 AND processed_at < [at $2] AND ") +
                                kSettled + " LIMIT $3 [skip]")) {}

  sql::Statement enter, set_outcome, leave, lock, in_trouble, lock_due, lock_due_head,
      lock_held_head, insert, update, erase, old;

  static const Statements& of(sql::Kind kind) {
    static const Statements postgres(sql::Kind::postgres);
    static const Statements sqlite(sql::Kind::sqlite);
    return kind == sql::Kind::postgres ? postgres : sqlite;
  }
};

Tables::Tables(sql::Kind kind, std::string consumer, std::string queue, bool ordered,
               std::function<Millis()> time_shift)
    : kind_(kind),
      consumer_(std::move(consumer)),
      queue_(std::move(queue)),
      ordered_(ordered),
      time_shift_(std::move(time_shift)),
      sql_(Statements::of(kind)) {}

std::int64_t Tables::shift() const { return time_shift_ ? time_shift_().count() : 0; }

Result<void> Tables::check(sql::Connection& connection) const {
  auto there = connection.query(
      kind_ == sql::Kind::postgres
          ? "SELECT count(*) FROM (SELECT to_regclass('inbox_version') AS name) n"
            " WHERE name IS NOT NULL"
          : "SELECT count(*) FROM main.sqlite_schema WHERE name = 'inbox_version'");
  if (!there) return there.error();
  if (there->front().integer(0) == 0) {
    return sql::not_installed(schema(), "this database has no inbox");
  }
  auto version = connection.query("SELECT max(version) FROM inbox_version");
  if (!version) return version.error();
  const auto number = version->front().integer(0);
  return number > kSchemaVersion ? Result<void>(sql::made_by_newer(schema(), number))
                                 : Result<void>();
}

Result<Tables::Entered> Tables::enter(sql::Transaction& transaction,
                                      const std::vector<std::string>& ids, Outcome outcome) const {
  Entered entered;
  const auto run = [&](sql::Value value) -> Result<void> {
    auto rows =
        transaction.query(sql_.enter, {consumer_, std::move(value), std::string(text_of(outcome))});
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      entered.fresh.push_back(row.text(0));
      entered.transaction = row.integer(1);
    }
    return {};
  };
  if (kind_ == sql::Kind::postgres) {
    if (auto done = run(ids); !done) return done.error();
    return entered;
  }
  for (const auto& id : ids) {
    if (auto done = run(id); !done) return done.error();
  }
  return entered;
}

Result<TransactionState> Tables::look_up(sql::Connection& connection, std::int64_t transaction) {
  auto rows =
      connection.query("SELECT pg_xact_status($1::text::xid8)", {std::to_string(transaction)});
  const bool never_begun = connection.sqlstate() == "22023";
  if (!rows && never_begun) return TransactionState::rolled_back;
  if (!rows) return rows.error();
  const std::string state = rows->front().text(0);
  if (state == "in progress") return TransactionState::open;
  return state == "committed" ? TransactionState::committed : TransactionState::rolled_back;
}

Result<void> Tables::set_outcome(sql::Transaction& transaction, const std::string& id,
                                 Outcome outcome) const {
  return without_rows(
      transaction.query(sql_.set_outcome, {consumer_, id, std::string(text_of(outcome)), shift()}));
}

Result<void> Tables::leave(sql::Transaction& transaction, const std::string& id) const {
  return without_rows(transaction.query(sql_.leave, {consumer_, id}));
}

Result<Row> Tables::lock(sql::Transaction& transaction, const std::string& id) const {
  auto rows = transaction.query(sql_.lock, {consumer_, id});
  if (!rows) return rows.error();
  if (rows->empty()) return Row();
  auto row = trouble_in(rows->front(), 0);
  if (!row) return row.error();
  return Row(*row);
}

Result<std::set<std::string>> Tables::in_trouble(sql::Transaction& transaction,
                                                 const std::vector<std::string>& aggregates) const {
  std::set<std::string> found;
  if (!ordered_ || aggregates.empty()) return found;
  const auto ask = [&](sql::Value value) -> Result<void> {
    auto rows = transaction.query(sql_.in_trouble, {consumer_, std::move(value)});
    if (!rows) return rows.error();
    for (const auto& row : *rows) found.insert(row.text(0));
    return {};
  };
  if (kind_ == sql::Kind::postgres) {
    if (auto done = ask(aggregates); !done) return done.error();
    return found;
  }
  for (const auto& aggregate : std::set<std::string>(aggregates.begin(), aggregates.end())) {
    if (auto done = ask(aggregate); !done) return done.error();
  }
  return found;
}

Result<std::optional<Kept>> Tables::lock_due(sql::Transaction& transaction) const {
  if (!ordered_) return lock_first(transaction, sql_.lock_due, {consumer_, shift()});
  auto due = lock_first(transaction, sql_.lock_due_head, {consumer_, shift()});
  if (!due || *due) return due;
  return lock_first(transaction, sql_.lock_held_head, {consumer_, shift()});
}

Result<std::optional<Kept>> Tables::lock_first(sql::Transaction& transaction,
                                               const sql::Statement& statement,
                                               sql::Values values) const {
  auto rows = transaction.query(statement, std::move(values));
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<Kept>();
  const sql::Row& row = rows->front();
  auto trouble = trouble_in(row, 0);
  if (!trouble) return trouble.error();
  auto headers = event::parse_headers(row.text(10));
  if (!headers) return headers.error();
  return std::optional<Kept>(Kept{.event_id = row.text(3),
                                  .row = *trouble,
                                  .last_error = row.text(4),
                                  .message = {.exchange = row.text(5),
                                              .routing_key = row.text(6),
                                              .id = row.text(7),
                                              .body = row.text(8),
                                              .content_type = row.text(9),
                                              .headers = std::move(*headers)},
                                  .in_trouble_for = Millis(row.integer(11))});
}

Result<void> Tables::insert(sql::Transaction& transaction, const KeptMessage& kept,
                            const Decision& decision, const std::string& error) const {
  const Event& event = kept.event;
  const Message& message = kept.message;
  const sql::Value raw = kept.raw ? sql::Value(sql::Bytes{message.body}) : sql::Value();
  return without_rows(transaction.query(sql_.insert, {consumer_,
                                                      queue_,
                                                      std::string(text_of(decision.row.status)),
                                                      std::int64_t{decision.row.retries},
                                                      decision.due_in.count() + shift(),
                                                      printable(error, kMaxErrorText),
                                                      decision.row.claim,
                                                      std::int64_t{kept.lane},
                                                      kept.position,
                                                      kept.event_id,
                                                      event.type,
                                                      event.aggregate_type,
                                                      event.aggregate,
                                                      message.exchange,
                                                      message.routing_key,
                                                      kept.raw ? std::string() : message.body,
                                                      event::print_headers(message.headers),
                                                      event.correlation_id,
                                                      event.causation_id,
                                                      event.traceparent,
                                                      std::int64_t{event.version},
                                                      message.id,
                                                      message.content_type,
                                                      raw}));
}

Result<void> Tables::update(sql::Transaction& transaction, const std::string& id,
                            const Decision& decision, const std::string& error) const {
  if (decision.moot) return {};
  if (decision.ledger) {
    if (auto set = set_outcome(transaction, id, *decision.ledger); !set) return set;
  }
  switch (decision.rows) {
    case Decision::Rows::keep: return {};
    case Decision::Rows::erase: return without_rows(transaction.query(sql_.erase, {consumer_, id}));
    case Decision::Rows::put: break;
  }
  return without_rows(transaction.query(
      sql_.update, {consumer_, id, std::string(text_of(decision.row.status)),
                    std::int64_t{decision.row.retries}, decision.row.claim,
                    decision.due_in.count() + shift(), printable(error, kMaxErrorText), shift()}));
}

Result<std::int64_t> Tables::forget_old(sql::Connection& connection, Millis window,
                                        std::int64_t most) const {
  std::int64_t forgotten = 0;
  auto done = connection.transaction([&](sql::Transaction& transaction) -> Result<void> {
    auto old = transaction.query(sql_.old, {consumer_, shift() - window.count(), most});
    if (!old) return old.error();
    for (const auto& row : *old) {
      // A discarded event has a row.
      for (const sql::Statement* one : {&sql_.erase, &sql_.leave}) {
        auto gone = transaction.query(*one, {consumer_, row.text(0)});
        if (!gone) return gone.error();
      }
    }
    forgotten = static_cast<std::int64_t>(old->size());
    return {};
  });
  if (!done) return done.error();
  return forgotten;
}

}  // namespace baton::inbox
