#pragma once

// The transactional outbox: a service writes its events in the transaction that makes them true,
// and a relay publishes them (baton/relay.h, `baton relay`).
//
//   baton::Outbox outbox({.exchange = "documents"});
//   begin(db);
//   insert_document(db, id);
//   outbox.add(db, {.type = "DocumentUploaded", .aggregate = id, .payload = body});
//   commit(db);
//
// Promised: an event is published if and only if its transaction commits; at least once; events of
// one aggregate in the order in which their transactions became visible. Of transactions that
// overlap either may come first, unless each locks the row of the aggregate before it adds, as an
// UPDATE of it does. Other languages call the SQL function outbox_add (docs/events.md).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/event.h"
#include "baton/export.h"
#include "baton/result.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;

namespace baton {

// Lanes divide the aggregates of an outbox among the replicas of its relay.
inline constexpr int kOutboxLanes = 16;

struct OutboxOptions {
  std::string exchange;  // for events that name none: an event without any is refused

  // PostgreSQL: no NOTIFY, which a transaction that is to be prepared (two-phase commit) must not
  // do. The relay finds such events within a second.
  bool quiet = false;

  // PostgreSQL: add() prepares its statement once a session, so that the server plans it once. Not
  // for connections to a pooler that gives each transaction another session.
  bool prepared = false;
};

// Creates the tables and functions, or brings them up to date; harmless to repeat. Needs the right
// to create tables. PostgreSQL: in the first schema of the search path. SQLite: waits for other
// writers for as long as the busy timeout of the connection says. `bad_store`: made by a newer
// Baton.
BATON_EXPORT Result<void> install_outbox(pg_conn* connection);
BATON_EXPORT Result<void> install_outbox(sqlite3* database);

// Thread-safe; the connections are the caller's.
class BATON_EXPORT Outbox {
 public:
  explicit Outbox(OutboxOptions options = {}) : options_(std::move(options)) {}

  // Inside the caller's open transaction. Gives the id of the event. `bad_request`: the event (see
  // check_event), it has no exchange, or no transaction is open; `bad_store`: the tables are
  // missing, and the message says how to make them. On PostgreSQL, after an error of the server the
  // transaction is aborted.
  Result<std::string> add(pg_conn* transaction, const Event& event) const;
  Result<std::string> add(sqlite3* transaction, const Event& event) const;

  // The same for several events in one statement, all or none.
  Result<std::vector<std::string>> add_all(pg_conn* transaction,
                                           std::span<const Event> events) const;
  Result<std::vector<std::string>> add_all(sqlite3* transaction,
                                           std::span<const Event> events) const;

 private:
  OutboxOptions options_;
};

}  // namespace baton
