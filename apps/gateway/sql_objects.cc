#include "apps/gateway/sql_objects.h"

#include "apps/common/make_tables.h"
#include "apps/gateway/postgres_objects.sql.h"
#include "apps/gateway/sqlite_objects.sql.h"
#include "baton/fence.h"
#include "sql/connection.h"
#include "sql/pool.h"
#include "sql/transaction.h"

namespace baton::gateway {
namespace {

constexpr std::string_view kRequestColumns =
    "name, fingerprint, target, signal, phase, duplicates, created_at, last_seen_at, execution";
constexpr std::string_view kExecutionColumns =
    "name, request, target, phase, created_at, finished_at";
constexpr std::int64_t kForgetAtOnce = 1000;
constexpr Millis kStatementTimeout{5'000};
constexpr std::size_t kSessions = 8;  // on PostgreSQL, for readers and for writers

Time time_of(std::int64_t millis) { return Time(std::chrono::milliseconds(millis)); }
std::int64_t millis(Time time) { return time.time_since_epoch().count(); }
std::string word(Phase phase) { return std::string(to_string(phase)); }

RemediationRequest to_request(const sql::Row& row) {
  return {.name = row.text(0),
          .fingerprint = row.text(1),
          .target = parse_target(row.text(2)).value_or(Target{}),
          .signal = row.text(3),
          .phase = parse_phase(row.text(4)).value_or(Phase::failed),
          .duplicates = row.integer(5),
          .created = time_of(row.integer(6)),
          .last_seen = time_of(row.integer(7)),
          .execution = row.text(8)};
}

WorkflowExecution to_execution(const sql::Row& row) {
  return {.name = row.text(0),
          .request = row.text(1),
          .target = parse_target(row.text(2)).value_or(Target{}),
          .phase = parse_phase(row.text(3)).value_or(Phase::failed),
          .created = time_of(row.integer(4)),
          .finished = time_of(row.integer(5))};
}

template <typename Object>
Result<std::optional<Object>> first(const Result<sql::Rows>& rows,
                                    Object (*convert)(const sql::Row&)) {
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<Object>();
  return std::optional<Object>(convert(rows->front()));
}

template <typename Object>
Result<std::vector<Object>> all(const Result<sql::Rows>& rows, Object (*convert)(const sql::Row&)) {
  if (!rows) return rows.error();
  std::vector<Object> objects;
  for (const auto& row : *rows) objects.push_back(convert(row));
  return objects;
}

// Readers do not wait for a writer. On SQLite one connection each is enough: what takes time is the
// disk.
class SqlObjects final : public ObjectStore {
 public:
  SqlObjects(const std::string& url, const sql::Options& options, std::size_t sessions)
      : readers_(url, options, sessions), writers_(url, options, sessions) {}

  Result<std::optional<RemediationRequest>> request(const std::string& name) override {
    return first(read("SELECT " + columns_of_request() + " WHERE name = $1", {name}), to_request);
  }

  Result<std::optional<RemediationRequest>> active_request(
      const std::string& fingerprint) override {
    return first(read("SELECT " + columns_of_request() +
                          " WHERE fingerprint = $1 AND phase IN ('Pending', 'Running')"
                          " ORDER BY created_at, name LIMIT 1",
                      {fingerprint}),
                 to_request);
  }

  Result<void> overtake(const Guard& guard) override {
    return guarded(guard, [](sql::Transaction&) { return Result<void>(); });
  }

  Result<bool> create(const RemediationRequest& request, const Guard& guard) override {
    return insert(
        "INSERT INTO gateway_request"
        " (name, fingerprint, target, signal, phase, created_at, last_seen_at)"
        " VALUES ($1, $2, $3, $4, 'Pending', $5, $5) ON CONFLICT (name) DO NOTHING",
        {request.name, request.fingerprint, request.target.text(), request.signal,
         millis(request.created)},
        {"request created", request.name, request.target.text(), request.created}, guard);
  }

  Result<std::optional<std::int64_t>> count_duplicate(const std::string& name, Time now) override {
    auto rows = write(
        "UPDATE gateway_request SET duplicates = duplicates + 1,"
        " last_seen_at = CASE WHEN last_seen_at > $2 THEN last_seen_at ELSE $2 END"
        " WHERE name = $1 AND phase IN ('Pending', 'Running') RETURNING duplicates",
        {name, millis(now)});
    if (!rows) return rows.error();
    if (rows->empty()) return std::optional<std::int64_t>();
    return std::optional<std::int64_t>(rows->front().integer(0));
  }

  Result<std::vector<RemediationRequest>> startable_requests(std::size_t limit) override {
    return all(read("SELECT name, fingerprint, target, signal, phase, duplicates, created_at,"
                    " last_seen_at, execution FROM (SELECT *, row_number()"
                    " OVER (PARTITION BY target ORDER BY created_at, name) AS turn"
                    " FROM gateway_request WHERE phase = 'Pending') AS oldest"
                    " WHERE turn = 1 AND NOT EXISTS (SELECT 1 FROM gateway_execution AS other"
                    " WHERE other.target = oldest.target AND other.phase = 'Running'"
                    " AND other.request <> oldest.name)"
                    " ORDER BY created_at, name LIMIT $1",
                    {static_cast<std::int64_t>(limit)}),
               to_request);
  }

  Result<void> set_running(const std::string& request, const std::string& execution,
                           const Guard& guard) override {
    return guarded(guard, [&](sql::Transaction& transaction) {
      return plain(
          transaction.query("UPDATE gateway_request SET phase = 'Running', execution = $2"
                            " WHERE name = $1 AND phase = 'Pending'",
                            {request, execution}));
    });
  }

  Result<std::size_t> conclude_requests(Time now) override {
    auto open = read(
        "SELECT 1 FROM gateway_request AS r JOIN gateway_execution AS e ON e.name = r.execution"
        " WHERE r.phase = 'Running' AND e.phase IN ('Completed', 'Failed') LIMIT 1",
        {});
    if (!open) return open.error();
    if (open->empty()) return std::size_t{0};  // no need to take the write lock
    auto rows = write(
        "UPDATE gateway_request SET finished_at = $1,"
        " phase = (SELECT e.phase FROM gateway_execution AS e WHERE e.name = execution)"
        " WHERE phase = 'Running' AND EXISTS (SELECT 1 FROM gateway_execution AS e"
        " WHERE e.name = execution AND e.phase IN ('Completed', 'Failed')) RETURNING name",
        {millis(now)});
    if (!rows) return rows.error();
    return rows->size();
  }

  Result<std::vector<RemediationRequest>> requests(std::optional<Phase> phase,
                                                   std::size_t limit) override {
    return all(read("SELECT name, fingerprint, target, '', phase, duplicates, created_at,"
                    " last_seen_at, execution FROM gateway_request"
                    " WHERE $1 = '' OR phase = $1 ORDER BY created_at DESC, name LIMIT $2",
                    {phase ? word(*phase) : std::string(), static_cast<std::int64_t>(limit)}),
               to_request);
  }

  Result<std::optional<WorkflowExecution>> execution(const std::string& name) override {
    return first(read("SELECT " + columns_of_execution() + " WHERE name = $1", {name}),
                 to_execution);
  }

  Result<std::optional<WorkflowExecution>> active_execution(const Target& target) override {
    return first(read("SELECT " + columns_of_execution() +
                          " WHERE target = $1 AND phase = 'Running' LIMIT 1",
                      {target.text()}),
                 to_execution);
  }

  Result<std::vector<WorkflowExecution>> executions(std::optional<Phase> phase,
                                                    std::size_t limit) override {
    return all(read("SELECT " + columns_of_execution() +
                        " WHERE $1 = '' OR phase = $1 ORDER BY created_at DESC, name LIMIT $2",
                    {phase ? word(*phase) : std::string(), static_cast<std::int64_t>(limit)}),
               to_execution);
  }

  Result<bool> create(const WorkflowExecution& execution, const Guard& guard) override {
    return insert(
        "INSERT INTO gateway_execution (name, request, target, phase, created_at)"
        " VALUES ($1, $2, $3, 'Running', $4) ON CONFLICT (name) DO NOTHING",
        {execution.name, execution.request, execution.target.text(), millis(execution.created)},
        {"execution created", execution.name, execution.target.text(), execution.created}, guard);
  }

  Result<bool> finish_execution(const std::string& name, Phase phase, Time now) override {
    bool finished = false;
    auto writer = writers_.take();
    if (!writer) return writer.error();
    auto done = (*writer)->transaction([&](sql::Transaction& transaction) -> Result<void> {
      auto rows = transaction.query(
          "UPDATE gateway_execution SET phase = $2, finished_at = $3"
          " WHERE name = $1 AND phase = 'Running' RETURNING target",
          {name, word(phase), millis(now)});
      if (!rows) return rows.error();
      finished = !rows->empty();
      if (!finished) return {};
      return record(transaction, {"execution finished", name, rows->front().text(0), now}, {});
    });
    if (!done) return done.error();
    return finished;
  }

  Result<std::size_t> forget(Time before) override {
    std::size_t forgotten = 0;
    for (const std::string sql :
         {"DELETE FROM gateway_request WHERE name IN (SELECT name FROM gateway_request"
          " WHERE phase IN ('Completed', 'Failed') AND finished_at < $1 LIMIT $2) RETURNING 1",
          "DELETE FROM gateway_execution WHERE name IN (SELECT name FROM gateway_execution AS e"
          " WHERE phase IN ('Completed', 'Failed') AND finished_at < $1 AND NOT EXISTS"
          " (SELECT 1 FROM gateway_request AS r WHERE r.name = e.request) LIMIT $2) RETURNING 1",
          "DELETE FROM gateway_event WHERE seq IN (SELECT seq FROM gateway_event"
          " WHERE at < $1 LIMIT $2) RETURNING 1"}) {
      auto rows = write(sql, {millis(before), kForgetAtOnce});
      if (!rows) return rows.error();
      forgotten += rows->size();
    }
    return forgotten;
  }

 private:
  struct Event {
    std::string what;
    std::string object;
    std::string target;
    Time at;
  };

  static std::string columns_of_request() {
    return std::string(kRequestColumns) + " FROM gateway_request";
  }
  static std::string columns_of_execution() {
    return std::string(kExecutionColumns) + " FROM gateway_execution";
  }

  static Result<void> plain(const Result<sql::Rows>& rows) {
    if (!rows) return rows.error();
    return {};
  }

  Result<sql::Rows> read(const std::string& sql, const sql::Values& values) {
    auto reader = readers_.take();
    if (!reader) return reader.error();
    return (*reader)->query(sql, values);
  }

  Result<sql::Rows> write(const std::string& sql, const sql::Values& values) {
    auto writer = writers_.take();
    if (!writer) return writer.error();
    return (*writer)->query(sql, values);
  }

  template <typename Body>
  Result<void> guarded(const Guard& guard, Body body) {
    auto writer = writers_.take();
    if (!writer) return writer.error();
    return (*writer)->transaction([&](sql::Transaction& transaction) -> Result<void> {
      if (auto ok = transaction.fence(guard.tokens); !ok) return ok;
      return body(transaction);
    });
  }

  Result<bool> insert(const std::string& sql, const sql::Values& values, const Event& event,
                      const Guard& guard) {
    bool inserted = false;
    auto done = guarded(guard, [&](sql::Transaction& transaction) -> Result<void> {
      auto rows = transaction.query(sql, values);
      if (!rows) return rows.error();
      inserted = rows->affected() == 1;
      if (!inserted) return {};
      return record(transaction, event, guard);
    });
    if (!done) return done.error();
    return inserted;
  }

  static Result<void> record(sql::Transaction& transaction, const Event& event,
                             const Guard& guard) {
    return plain(
        transaction.query("INSERT INTO gateway_event (at, event, object, target, actor, token)"
                          " VALUES ($1, $2, $3, $4, $5, $6)",
                          {millis(event.at), event.what, event.object, event.target, guard.owner,
                           static_cast<std::int64_t>(guard.token())}));
  }

  sql::Pool readers_;
  sql::Pool writers_;
};

// A role that may only use the tables finds them there.
Result<void> install(sql::Connection& database) {
  const bool postgres = database.kind() == sql::Kind::postgres;
  auto version = database.query("SELECT max(version) FROM gateway_meta");
  if (!version) {
    auto made = apps::make_tables(database, postgres ? embedded::apps_gateway::postgres_objects_sql
                                                     : embedded::apps_gateway::sqlite_objects_sql);
    if (!made) return made;
    auto fence = postgres ? install_fence(database.postgres()) : install_fence(database.sqlite());
    if (!fence) return fence;
    version = database.query("SELECT max(version) FROM gateway_meta");
    if (!version) return version.error();
  }
  if (version->front().integer(0) != 1) {
    return Error{.code = Code::bad_store,
                 .message = "objects: the tables were made by a newer version of baton-gateway"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_sql_objects(std::string_view url) {
  const sql::Options options{
      .name = "objects", .application = "baton-gateway", .statement_timeout = kStatementTimeout};
  auto database = sql::Connection::open(std::string(url), options);
  if (!database) return database.error();
  if (auto ok = install(**database); !ok) return ok.error();
  const std::size_t sessions = (*database)->kind() == sql::Kind::postgres ? kSessions : 1;
  return std::unique_ptr<ObjectStore>(
      std::make_unique<SqlObjects>(std::string(url), options, sessions));
}

}  // namespace baton::gateway
