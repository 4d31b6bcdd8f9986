#pragma once

// The semantics of Baton. Pure: no I/O, no threads, no clock. Every store either runs this code or
// is shown by the conformance suite to answer as it does, request by request.

#include "core/lock_table.h"

namespace baton::core {

// Answers one request at the time `now` and changes the table accordingly. `now` never goes back
// for one table.
Reply apply(LockTable& table, const Request& request, StoreTime now, Effects& effects);

// The claimant that a request describes. The same for all its names; the mode comes from the
// target.
Claimant claimant_of(const Request& request);

// The first broken rule of a request in words, or nothing. apply() checks it first; stores that do
// not run apply() call it before they send.
std::optional<std::string> broken_rule(const Request& request);

// Why a store of these capabilities does not support a request, in words, or nothing. Such a
// request is answered `unsupported`, never with a weaker lock.
std::optional<std::string> beyond(const Capabilities& can, const Request& request);

// Whether nothing in the state is alive and there is no note: then the store may drop the name.
bool forgettable(const NameState& state, StoreTime now);

// A name as `get` and `find` show it.
LockInfo describe(const std::string& key, const NameState& state, StoreTime now,
                  std::size_t max_waiters);

// Whether a described name matches a query (all fields but the paging).
bool matches(const Query& query, const LockInfo& info);

// A prefix of every key that can match. Not every key with this prefix matches: see matches().
std::string key_prefix(const Query& query);

}  // namespace baton::core
