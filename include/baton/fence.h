#pragma once

// The lease is best effort, the token is safety. A fence lives with the data that the lock
// protects, in a table of its own: it remembers the highest token seen of each mode, and refuses a
// holder that has been overtaken by an incompatible one. Call it first in the transaction that
// writes; the fence keeps its row locked until the commit, so a paused ex-holder cannot slip in.

#include <string_view>

#include "baton/mode.h"
#include "baton/result.h"
#include "baton/store.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;
struct redisContext;  // of hiredis

namespace baton {

// Creates the fence in a database that may hold no locks at all. Harmless to repeat.
BATON_EXPORT Result<void> install_fence(pg_conn* connection);
BATON_EXPORT Result<void> install_fence(sqlite3* database);
BATON_EXPORT Result<void> install_fence(redisContext* connection);  // only loads the script

// Inside the caller's open transaction. An error (fenced) means: roll back, somebody newer wrote.
// `key` is Lease::key(), or $BATON_NAME under `baton run`.
BATON_EXPORT Result<void> fence(pg_conn* connection, std::string_view key, Mode mode, Token token);
BATON_EXPORT Result<void> fence(sqlite3* database, std::string_view key, Mode mode, Token token);

// Redis has no transaction to come first in: call it before MULTI. It watches the fence, so that an
// EXEC that answers nil means the same as fenced. A refusal may end what the connection watches,
// your own keys too. In a script of your own, call the function that redis_fence_script() defines
// instead: see docs/stores/redis.md.
BATON_EXPORT Result<void> fence(redisContext* connection, std::string_view key, Mode mode,
                                Token token);
[[nodiscard]] BATON_EXPORT std::string_view redis_fence_script();

// The highest token the fence has seen of any name: StoreAdmin::raise_tokens wants it after the
// store of the locks was restored from a backup.
BATON_EXPORT Result<Token> highest_fenced(pg_conn* connection);
BATON_EXPORT Result<Token> highest_fenced(sqlite3* database);
BATON_EXPORT Result<Token> highest_fenced(redisContext* connection);

// fence(tx, lease): the same for anything with key(), mode() and token().
template <typename Transaction, typename Held>
Result<void> fence(Transaction* transaction, const Held& held) {
  return fence(transaction, held.key(), held.mode(), held.token());
}

}  // namespace baton
