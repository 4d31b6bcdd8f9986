#include "store/postgres/examine.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "store/common/url.h"

namespace baton::store::postgres {
namespace {

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// One examination on one connection. What cannot be asked, for lack of rights, is left out.
class Examiner : private Findings {
 public:
  Examiner(Connection& connection, const Settings& settings, const Checkup& checkup,
           Deadline deadline)
      : connection_(connection), settings_(settings), checkup_(checkup), deadline_(deadline) {}

  Result<std::vector<Finding>> run() {
    const auto pooled = connection_.behind_transaction_pool(deadline_);
    if (!pooled) return pooled.error();
    if (*pooled) {
      add("transaction-pooling", Severity::danger,
          "this URL leads through a proxy that gives each transaction another session",
          "Baton refuses to work here: session locks, prepared statements and notifications would "
          "be lost or get into wrong hands",
          "give the server's own address, or a pool in session mode");
      return worst_first();
    }
    line();
    if (!standby()) {
      if (auto looked = schema_and_rights(); !looked) return looked.error();
      if (auto looked = durability(); !looked) return looked.error();
      fences();
      followers();
      speed();
    }
    timeouts();
    room();
    clock();
    return worst_first();
  }

 private:
  // The first column of the first row; nothing if it may not be asked.
  std::optional<std::string> one(const std::string& sql) {
    const auto rows = connection_.script(sql, deadline_);
    if (!rows || rows->size() == 0 || rows->null(0, 0)) return std::nullopt;
    return std::string(rows->text(0, 0));
  }

  // SCRAM hides the password from those who listen, but not from those who answer for the server
  // and ask for it in clear.
  void line() {
    const Connection::Line line = connection_.line();
    const bool may_be_plain =
        line.sslmode == "disable" || line.sslmode == "allow" || line.sslmode == "prefer";
    if (!line.has_password || !may_be_plain || is_local(line.host)) return;
    add("password-in-clear", Severity::warning,
        "the password may go over the network as it is (sslmode is " + line.sslmode + ")",
        "anyone on the network path can take, break and forget any lock",
        "add ?sslmode=verify-full&sslrootcert=FILE to the URL");
  }

  bool standby() {
    if (one("SELECT pg_is_in_recovery()") != "t") return false;
    add("standby", Severity::danger, "this server is a standby, which cannot write",
        "nobody can lock anything here until it is promoted",
        "name the primary, or all hosts with target_session_attrs=read-write");
    return true;
  }

  Result<void> schema_and_rights() {
    const auto foreign = foreign_objects(connection_, settings_, Trusted::schema_owner, deadline_);
    if (!foreign) return foreign.error();
    if (!foreign->empty()) {
      add("foreign-owner", Severity::danger,
          "another role than the owner of the schema owns " + *foreign,
          "that role can change it at any time, and with it who gets which lock; whatever a "
          "function does, it does with the rights of the role that locks",
          "ALTER … OWNER TO the owner of the schema; drop it only if it is not Baton's, for with "
          "it "
          "go the locks and notes that it holds");
      return {};
    }
    const auto missing = missing_rights(connection_, settings_, deadline_, checkup_.plan);
    if (!missing) return missing.error();
    if (!missing->empty()) {
      const auto grants = grants_for_role(connection_, settings_, deadline_, checkup_.plan);
      if (!grants) return grants.error();
      add("missing-rights", Severity::danger, "this role lacks " + *missing,
          "the store does not open", *grants);
      return {};
    }
    const auto version = schema_version(connection_, settings_, deadline_);
    if (!version) return version.error();
    add(schema_finding(*version, checkup_.plan.version(), migrate_command(settings_)));
    if (*version != checkup_.plan.version()) return {};
    const auto older = has_older_functions(connection_, settings_, deadline_, checkup_.plan);
    if (!older) return older.error();
    if (*older) {
      add("schema", Severity::danger, "the functions in the schema are older than this baton",
          "nobody can lock anything here with it", migrate_command(settings_));
    }
    return {};
  }

  // A function of the same name that fits the types of a call better is called instead of ours.
  void fences() {
    const auto foreign =
        one("SELECT string_agg(p.oid::regprocedure::text || ' of ' || pg_get_userbyid(p.proowner), "
            "', ')"
            " FROM pg_proc p JOIN pg_namespace own ON own.nspname = 'baton_fence'"
            " WHERE p.pronamespace = to_regnamespace('public') AND p.proname = 'baton_fence'"
            " AND p.proowner <> own.nspowner");
    if (!foreign) return;
    add("foreign-fence", Severity::danger,
        "another role than the owner of the fence owns the function " + *foreign,
        "a call whose types it fits better goes to it, and an ex-holder may write",
        "DROP FUNCTION it, REVOKE CREATE ON SCHEMA public FROM PUBLIC, and write the types in "
        "calls, "
        "as in docs/fencing.md");
  }

  Result<void> durability() {
    auto rows = connection_.script(
        "SELECT name, reset_val FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', "
        "'synchronous_commit', 'synchronous_standby_names', 'idle_session_timeout', "
        "'tcp_keepalives_idle')",
        deadline_);
    if (!rows) return rows.error();
    for (int row = 0; row < rows->size(); ++row) {
      values_[std::string(rows->text(row, 0))] = rows->text(row, 1);
    }
    if (values_["fsync"] == "off") {
      add("fsync-off", Severity::danger, "fsync is off: the server does not wait for its disk",
          "when the machine or its power fails, tokens and locks that were granted are forgotten: "
          "two holders at once, and tokens that come twice, which no fence can tell apart",
          "fsync = on in postgresql.conf, and reload");
    }
    if (values_["full_page_writes"] == "off") {
      add("full-page-writes-off", Severity::danger, "full_page_writes is off",
          "when the machine fails in the middle of a write, a page of the lock tables may be torn: "
          "locks and tokens are lost or the server does not start",
          "full_page_writes = on, unless the filesystem never tears a page");
    }
    const std::string& commit = values_["synchronous_commit"];
    if (commit == "off") {
      add("commit-not-durable", Severity::warning, "synchronous_commit is off for this role",
          "Baton turns it on for its own grants, but when the server crashes, transactions of "
          "yours "
          "that were reported committed are gone: work that a holder had done, and fences",
          "ALTER ROLE … SET synchronous_commit = on, or where work under a lock is committed");
    } else if (commit == "local" && !values_["synchronous_standby_names"].empty()) {
      add("commit-not-replicated", Severity::warning,
          "synchronous_commit is local although there is a synchronous standby",
          "a standby that is promoted may not know the last grants: two holders at once, and "
          "tokens "
          "that come twice; then only tokens already seen by a fence protect your data",
          "ALTER ROLE … SET synchronous_commit = on");
    }
    return {};
  }

  void followers() {
    const auto lagging = one(
        "SELECT count(*) FROM pg_stat_replication WHERE coalesce(sync_state, 'async') = 'async'");
    if (!lagging || *lagging == "0" || !values_["synchronous_standby_names"].empty()) return;
    add("asynchronous-standby", Severity::warning,
        *lagging + " standby follows without the primary waiting for it",
        "when the primary is lost and the standby promoted, it may not know the last grants: two "
        "holders at once until the older lease ends, and tokens that come twice",
        "name it in synchronous_standby_names; or after a failover wait for the longest TTL and "
        "run "
        "baton fence rebase");
  }

  void timeouts() {
    if (const auto idle = number(values_["idle_session_timeout"]); idle > 0) {
      add("idle-session-timeout", Severity::advice,
          "the server ends sessions that are idle for " + std::to_string(idle) + " ms",
          "Baton opens them again, but a waiter may hear up to a second late that it has the lock",
          "ALTER ROLE … SET idle_session_timeout = 0; where Baton needs it, it sets it itself");
    }
    constexpr std::int64_t kLong = 600;
    if (const auto alive = number(one("SHOW tcp_keepalives_idle").value_or("0"));
        alive > kLong && one("SELECT inet_client_addr()").has_value()) {
      add("keepalives", Severity::advice,
          "the server asks a silent client only after " + std::to_string(alive) +
              " s whether it is still there",
          "sessions of machines that vanished, power or network, stay that long and count against "
          "max_connections",
          "tcp_keepalives_idle = 60, tcp_keepalives_interval = 10, tcp_keepalives_count = 6");
    }
  }

  void room() {
    const auto left =
        one("SELECT least("
            " current_setting('max_connections')::int"
            "  - current_setting('superuser_reserved_connections')::int"
            "  - (SELECT sum(numbackends) FROM pg_stat_database),"
            " (SELECT CASE WHEN datconnlimit >= 0 THEN datconnlimit - numbackends END"
            "  FROM pg_database d JOIN pg_stat_database s ON s.datid = d.oid"
            "  WHERE d.datname = current_database()),"
            " (SELECT CASE WHEN rolconnlimit >= 0 THEN rolconnlimit - (SELECT count(*)"
            "   FROM pg_stat_activity a WHERE a.usename = r.rolname) END"
            "  FROM pg_roles r WHERE r.rolname = session_user))::int");
    if (!left || number(*left) >= checkup_.sessions) return;
    add("few-connections", Severity::warning,
        "the server has room for " + *left + " more sessions; one process may need " +
            std::to_string(checkup_.sessions),
        "replicas that start when it matters, as after a crash, are turned away and cannot take "
        "over",
        "raise max_connections or the limit of the role or database, or use fewer sessions "
        "elsewhere");
  }

  void speed() {
    const auto slowest = slowest_of(
        8, [&] { return one("SELECT pg_logical_emit_message(true, 'baton', '')").has_value(); });
    if (!slowest) return;
    add(slow_finding(*slowest, checkup_.ttl, settings_.location));
  }

  void clock() {
    const auto before = checkup_.clock();
    const auto theirs = one("SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint");
    const auto after = checkup_.clock();
    if (!theirs) return;
    const std::chrono::microseconds ahead(number(*theirs) - ((before + after) / 2).count());
    add(clock_finding(ahead, after - before));
  }

  Connection& connection_;
  const Settings& settings_;
  const Checkup& checkup_;
  const Deadline deadline_;
  std::map<std::string, std::string> values_;
};

}  // namespace

Result<std::vector<Finding>> examine(const Settings& settings, const Checkup& checkup,
                                     Deadline deadline) {
  auto connection = Connection::open(settings, deadline);
  if (!connection) return connection.error();
  return Examiner(**connection, settings, checkup, deadline).run();
}

}  // namespace baton::store::postgres
