#include "store/postgres_advisory/server_queries.h"

#include <algorithm>

#include "json/json.h"

namespace baton::store::postgres_advisory {
namespace {

using nlohmann::json;
using postgres::Params;
using postgres::Rows;
using postgres::Statement;
using postgres::Type;

const Statement kLook{0,
                      "advisory_look",
                      "SELECT key, lock_key, ordinal, note, holders, waiters, version, now_us "
                      "FROM baton_advisory.look($1, $2, $3)",
                      {postgres::kTextArray, 20, 20}};
const Statement kNames{
    1, "advisory_names", "SELECT key FROM baton_advisory.names($1, $2, $3, $4)", {25, 25, 16, 23}};
const Statement kRevoke{2,
                        "advisory_revoke",
                        "SELECT baton_advisory.revoke($1, $2, $3)",
                        {20, postgres::kUuidArray, 25}};
const Statement kTearAway{3,
                          "advisory_tear_away",
                          "SELECT baton_advisory.tear_away($1, $2, $3)",
                          {20, postgres::kUuidArray, postgres::kInt4Array}};
const Statement kCancel{4, "advisory_cancel", "SELECT pg_cancel_backend($1)", {23}};
const Statement kQueue{5,
                       "advisory_queue",
                       "SELECT pid, granted FROM pg_locks WHERE locktype = 'advisory' "
                       "AND pid = ANY ($1)",
                       {postgres::kInt4Array}};
const Statement kHasTerm{7,
                         "advisory_has_term",
                         "SELECT 1 FROM baton_advisory.term t "
                         "WHERE t.lock_key = $1 AND t.key = $2 AND t.grant_id = $3",
                         {20, 25, 2950}};
const Statement kSweep{6, "advisory_sweep", "SELECT baton_advisory.sweep()", {}};

GrantId grant_of(const json& item) {
  if (const auto& id = item.at("grant_id"); id.is_string()) {
    std::string text = id;
    std::erase(text, '-');
    if (const auto grant = parse_grant_id(text)) return *grant;
  }
  return {0, item.at("pid").get<std::uint64_t>()};  // a session that is not Baton's
}

// From the server's clock to ours.
StoreTime ours(const json& time, StoreTime server_now, StoreTime now) {
  return now + (StoreTime(time.get<std::int64_t>()) - server_now);
}

ServerView::Holding holding_of(const json& item, StoreTime server_now, StoreTime now) {
  ServerView::Holding found;
  core::Holder& holder = found.holder;
  holder.grant = grant_of(item);
  holder.mode = static_cast<Mode>(item.at("mode").get<int>());
  holder.token = item.at("token").is_null() ? 0 : item.at("token").get<Token>();
  holder.predicate = item.at("predicate");
  holder.owner = item.at("owner");
  if (!item.at("metadata").is_null()) holder.metadata = item.at("metadata").get<Metadata>();
  holder.ttl = Millis(item.at("ttl").get<std::int64_t>());
  holder.since = ours(item.at("since"), server_now, now);
  holder.expires = ours(item.at("ends"), server_now, now);
  holder.revoked = item.at("revoked");
  holder.reason = item.at("reason");
  if (item.at("released")) holder.state = core::HolderState::parked;
  found.pid = item.at("pid");
  return found;
}

ServerView seen_in(const Rows& rows, int row, StoreTime now) {
  enum { key, lock_key, ordinal, note, holders, waiters, version, now_us };
  ServerView seen;
  seen.lock_key = rows.integer(row, lock_key);
  seen.note = {rows.integer(row, ordinal), std::string(rows.text(row, note))};
  seen.schema_version = rows.integer(row, version);
  const StoreTime server_now(rows.integer(row, now_us));
  if (!rows.null(row, holders)) {
    for (const json& item : parse_json_or_throw(rows.text(row, holders))) {
      seen.holders.push_back(holding_of(item, server_now, now));
    }
  }
  if (!rows.null(row, waiters)) {
    for (const json& item : parse_json_or_throw(rows.text(row, waiters))) {
      core::Waiter waiter;
      waiter.grant = grant_of(item);
      waiter.mode = static_cast<Mode>(item.at("mode").get<int>());
      waiter.predicate = item.at("predicate");
      waiter.owner = item.at("owner");
      waiter.stale = now + std::chrono::seconds(1);  // nobody but its own process knows
      seen.waiters.push_back(std::move(waiter));
    }
  }
  return seen;
}

}  // namespace

Result<Rows> ServerQueries::run(const Statement& statement, const Params& params,
                                Deadline deadline) {
  auto connection = pool_.take(Lane::requests, deadline);
  if (!connection) return connection.error();
  return (*connection)
      ->run(statement, params, std::min(deadline, BootClock::now() + settings_.server.apply_limit));
}

Result<std::map<std::string, ServerView>> ServerQueries::look(const std::vector<std::string>& keys,
                                                              StoreTime now, At at,
                                                              Deadline deadline) {
  Params params;
  params.array(Type::text, keys, [](const std::string& key) { return std::string_view(key); });
  params.add(settings_.key);
  at ? params.add(std::int64_t{at->count()}) : params.null();
  auto rows = run(kLook, params, deadline);
  if (!rows) {
    rows.error().in_doubt = false;  // it only looks
    return rows.error();
  }
  std::map<std::string, ServerView> all;
  for (int row = 0; row < rows->size(); ++row) {
    all.emplace(std::string(rows->text(row, 0)), seen_in(*rows, row, now));
  }
  return all;
}

Result<std::vector<std::string>> ServerQueries::names(const std::string& prefix,
                                                      const std::string& after, bool idle,
                                                      std::size_t most, Deadline deadline) {
  Params params;
  params.add(std::string_view(prefix));
  params.add(std::string_view(after));
  params.add(idle);
  params.add(static_cast<std::int32_t>(most));
  auto rows = run(kNames, params, deadline);
  if (!rows) {
    rows.error().in_doubt = false;
    return rows.error();
  }
  std::vector<std::string> keys;
  for (int row = 0; row < rows->size(); ++row) keys.emplace_back(rows->text(row, 0));
  return keys;
}

Result<void> ServerQueries::revoke(std::int64_t lock_key, const std::vector<GrantId>& grants,
                                   const std::string& reason, Deadline deadline) {
  Params params;
  params.add(lock_key);
  params.array(Type::uuid, grants, [](GrantId grant) { return grant; });
  params.add(std::string_view(reason));
  auto rows = run(kRevoke, params, deadline);
  if (!rows) return rows.error();
  return {};
}

Result<void> ServerQueries::terminate(std::int64_t lock_key, const std::vector<GrantId>& grants,
                                      const std::vector<int>& pids, Deadline deadline) {
  Params params;
  params.add(lock_key);
  params.array(Type::uuid, grants, [](GrantId grant) { return grant; });
  params.array(Type::int4, pids, [](int pid) { return static_cast<std::int32_t>(pid); });
  auto rows = run(kTearAway, params, deadline);
  if (!rows) return rows.error();
  return {};
}

Result<void> ServerQueries::cancel(int pid, Deadline deadline) {
  Params params;
  params.add(static_cast<std::int32_t>(pid));
  auto rows = run(kCancel, params, deadline);
  if (!rows) return rows.error();
  return {};
}

Result<std::map<int, bool>> ServerQueries::queue_of(const std::vector<int>& pids,
                                                    Deadline deadline) {
  Params params;
  params.array(Type::int4, pids, [](int pid) { return static_cast<std::int32_t>(pid); });
  auto rows = run(kQueue, params, deadline);
  if (!rows) return rows.error();
  std::map<int, bool> found;
  for (int row = 0; row < rows->size(); ++row) {
    found[static_cast<int>(rows->integer(row, 0))] = rows->integer(row, 1) != 0;
  }
  return found;
}

Result<bool> ServerQueries::has_term(const LockRef& lock, Deadline deadline) {
  Params params;
  params.add(lock.lock_key);
  params.add(std::string_view(lock.key));
  params.add(lock.grant);
  auto rows = run(kHasTerm, params, deadline);
  if (!rows) {
    rows.error().in_doubt = false;  // it only looks
    return rows.error();
  }
  return rows->size() > 0;
}

Result<void> ServerQueries::sweep(Deadline deadline) {
  auto rows = run(kSweep, Params(), deadline);
  if (!rows) return rows.error();
  return {};
}

}  // namespace baton::store::postgres_advisory
