#pragma once

// The lease is best effort, the token is safety. A fence lives with the data that the lock
// protects, in a table of its own: it remembers the highest token seen of each mode, and refuses a
// holder that has been overtaken by an incompatible one. Call it first in the transaction that
// writes; the fence keeps its rows locked until the commit, so a paused ex-holder cannot slip in.
//
//   begin(db);
//   if (auto ok = baton::fence(db, lease); !ok) return rollback(db);
//   write(db);
//   commit(db);

#include <span>
#include <string_view>

#include "baton/fence_token.h"
#include "baton/mode.h"
#include "baton/result.h"
#include "baton/store.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;
struct redisContext;  // of hiredis

namespace baton {

// Creates the fence in a database that may hold no locks at all. Harmless to repeat. PostgreSQL:
// only the role that installs it may use it, until others are granted EXECUTE (docs/fencing.md);
// `unauthorized` if some of it belongs to another role.
BATON_EXPORT Result<void> install_fence(pg_conn* connection);
BATON_EXPORT Result<void> install_fence(sqlite3* database);
BATON_EXPORT Result<void> install_fence(redisContext* connection);  // only loads the script

// Inside the caller's open transaction: checks and records all names of a lease and all ancestors,
// `Lease::tokens()`, or none of them. For a transaction under several leases, put the tokens of all
// into one call: two calls may wait for those of another writer, who waits for them.
//
// `fenced`: somebody newer was here; roll back, the lease is over. A retryable error: another
// transaction came in between (SQLSTATE 40001 at REPEATABLE READ, SQLITE_BUSY_SNAPSHOT); roll back
// and repeat the whole transaction.
BATON_EXPORT Result<void> fence(pg_conn* connection, std::span<const FenceToken> tokens);
BATON_EXPORT Result<void> fence(sqlite3* database, std::span<const FenceToken> tokens);

// Redis has no transaction to come first in: call it before MULTI. It watches the fence, so that an
// EXEC that answers nil has written nothing: repeat all from fence() on, which then says whether
// the lease is over or only another holder, who may stand beside this one, came in between.
// A refusal may end what the connection watches, your own keys too. In a script of your own, call
// the functions that redis_fence_script() defines instead: see docs/stores/redis.md.
BATON_EXPORT Result<void> fence(redisContext* connection, std::span<const FenceToken> tokens);
[[nodiscard]] BATON_EXPORT std::string_view redis_fence_script();

// In a transaction of its own: from then on the fence refuses whatever is left of an earlier
// holder, who until then does not know of this one. For ElectorOptions::fence_first and
// SchedulerOptions::fence_first; the transactions that write still begin with fence().
BATON_EXPORT Result<void> fence_alone(pg_conn* connection, std::span<const FenceToken> tokens);
BATON_EXPORT Result<void> fence_alone(sqlite3* database, std::span<const FenceToken> tokens);
BATON_EXPORT Result<void> fence_alone(redisContext* connection, std::span<const FenceToken> tokens);

// The highest token the fence has seen of any name: StoreAdmin::raise_tokens wants it after the
// store of the locks was restored from a backup.
BATON_EXPORT Result<Token> highest_fenced(pg_conn* connection);
BATON_EXPORT Result<Token> highest_fenced(sqlite3* database);
BATON_EXPORT Result<Token> highest_fenced(redisContext* connection);

// fence(tx, lease): the same for anything with tokens(): a Lease, a Leadership, a Run.
template <typename Transaction, typename Held>
requires requires(const Held& held) { held.tokens(); }
Result<void> fence(Transaction* transaction, const Held& held) {
  const auto tokens = held.tokens();
  return fence(transaction, std::span<const FenceToken>(tokens));
}

// For one name: `key` is Lease::key(), or $BATON_NAME under `baton run`. It does not cover the
// other names of a set, nor ancestors.
template <typename Transaction>
Result<void> fence(Transaction* transaction, std::string_view key, Mode mode, Token token) {
  const FenceToken one{std::string(key), mode, token};
  return fence(transaction, std::span<const FenceToken>(&one, 1));
}

}  // namespace baton
