#pragma once

// The semantics of Baton. Pure: no I/O, no threads, no clock. Every store either runs this code or
// is shown by the conformance suite to answer as it does, request by request.

#include "core/lock_table.h"

namespace baton::core {

// Answers one request at `now` and leaves the table as that answer says. `now` never goes back for
// one table.
Reply apply(LockTable& table, const Request& request, StoreTime now, Effects& effects);

// Who asks with this request, for whichever of its names: the mode is that of each.
Claimant claimant_of(const Request& request);

// The first broken rule of a request in words, or nothing. apply() checks it first; stores that do
// not run apply() call it before they send.
std::optional<std::string> broken_rule(const Request& request);

// What a store of these capabilities cannot do of a request, in words, or nothing. Such a request
// is answered `unsupported`: never with a weaker lock.
std::optional<std::string> beyond(const Capabilities& can, const Request& request);

// Nothing that is still alive and no note: the store may drop the name.
bool forgettable(const NameState& state, StoreTime now);

// A name as `get` and `find` show it.
LockInfo describe(const std::string& key, const NameState& state, StoreTime now,
                  std::size_t max_waiters);

// Whether a described name answers a query (all but paging).
bool matches(const Query& query, const LockInfo& info);

// Every key that can match starts with this. Not every key that does, matches: `matches` decides.
std::string key_prefix(const Query& query);

}  // namespace baton::core
