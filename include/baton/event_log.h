#pragma once

// An event log: the events of many streams in one table, in one order that every reader sees.
//
//   baton::EventLog log;
//   begin(db);
//   const auto at = log.append(db, "order-7", events, version);  // superseded: somebody was first
//   commit(db);
//
// A stream is what an event is about, its aggregate. Its events are numbered from 1, and its
// version is the number of the last one: 0 if there is none. Positions order the events of all
// streams. They grow, have gaps, and may be committed out of order: other programs must not follow
// the highest position they see, for that loses events. Processors (baton/processors.h) read up to
// where nothing can come any more.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
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

inline constexpr std::size_t kMaxAppend = 1'000;  // events in one call

// Creates the tables of the event log and its processors, and the fence that processors need, or
// brings them up to date; harmless to repeat. Needs the right to create tables. PostgreSQL: in the
// first schema of the search path. `bad_store`: made by a newer Baton.
BATON_EXPORT Result<void> install_event_log(pg_conn* connection);
BATON_EXPORT Result<void> install_event_log(sqlite3* database);

// An event as the log has it: `event.aggregate` is its stream.
struct LoggedEvent {
  std::int64_t position = 0;
  std::int64_t stream_version = 0;  // from 1
  Event event;
  std::chrono::system_clock::time_point appended_at;
};

struct Appended {
  std::int64_t position = 0;  // of the last of these events
  std::int64_t version = 0;   // of the stream, now
  std::vector<std::string> ids;
};

struct ReadStream {
  std::int64_t after_version = 0;
  std::size_t limit = 1'000;  // at most kMaxAppend
};

// Thread-safe; the connections are the caller's.
class BATON_EXPORT EventLog {
 public:
  // Inside the caller's open transaction: all of these events or none. From then on until its end,
  // others that append to this stream wait, so append late in the transaction; who appends to
  // several streams should do so in the order of their names, or two may deadlock.
  //
  // `superseded`: the stream is not at `expected_version` (0: it must be new); nothing was written,
  // and the transaction can go on. `bad_request`: an event (see check_event; `aggregate` may be
  // left empty), more than kMaxAppend of them, or no transaction is open. `bad_store`: the tables
  // are missing. `unavailable`: the server is a standby, for one. On PostgreSQL, after an error of
  // the server the transaction is aborted.
  Result<Appended> append(pg_conn* transaction, std::string_view stream,
                          std::span<const Event> events,
                          std::optional<std::int64_t> expected_version = {}) const;
  Result<Appended> append(sqlite3* transaction, std::string_view stream,
                          std::span<const Event> events,
                          std::optional<std::int64_t> expected_version = {}) const;

  // The committed events of one stream and, inside of a transaction, one's own, by version. The
  // version of the last one is what append() expects.
  Result<std::vector<LoggedEvent>> read(pg_conn* connection, std::string_view stream,
                                        const ReadStream& what = {}) const;
  Result<std::vector<LoggedEvent>> read(sqlite3* database, std::string_view stream,
                                        const ReadStream& what = {}) const;
};

}  // namespace baton
