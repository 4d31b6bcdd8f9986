#pragma once

// The tables of an outbox as the relay uses them: PostgreSQL or SQLite behind one seam. Thin: what
// is read and written is decided by Look, when to sleep by WakeUp.
//
// Not thread-safe. Everything but open() needs an open database; after an error of any call, close
// and open again: what a session knew is lost with it, and so is what was read through it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "baton/clock.h"
#include "baton/fence_token.h"
#include "baton/result.h"
#include "event/message_headers.h"
#include "relay/look.h"
#include "sql/value.h"

namespace baton::relay {

// A lane and the token of its partition. Every statement below reads or writes under the lane's
// fence: a lane that a newer owner has taken over is told as `fenced`, and nothing of it is read or
// written.
struct OwnedLane {
  int number = 0;
  Token token = 0;
};

// An event where the database has put it. It becomes an event, and then a message, when it is sent,
// not when it is read: thousands of them that wait would fill the caches of the processor.
class StoredEvent {
 public:
  StoredEvent(sql::Row row, std::size_t at, std::size_t bytes)
      : row_(std::move(row)), at_(at), bytes_(bytes) {}

  [[nodiscard]] std::size_t bytes() const { return bytes_; }  // of payload and headers
  [[nodiscard]] event::SentEvent event() const;

 private:
  sql::Row row_;
  std::size_t at_;
  std::size_t bytes_;
};

using Events = std::map<Position, StoredEvent>;

struct LaneRead {
  OwnedLane lane;
  Read read;
};

struct LanePage {
  int lane = 0;
  Page page;
  Events events;  // not of all rows: so many bytes of them as fit
};

struct Looked {
  std::vector<LanePage> pages;
  std::set<int> fenced;
};

struct LaneHeads {
  int lane = 0;
  std::vector<Head> heads;
};

struct HeadsRead {
  std::vector<LaneHeads> lanes;
  std::set<int> fenced;
};

struct TakenLane {
  Snapshot from;
  std::set<std::string> in_index;  // aggregates
  std::int64_t restamped = 0;
};

struct LaneBatch {
  OwnedLane lane;
  Batch batch;
};

// The events that wait in the table, for people and metrics. Counted up to kMaxCounted.
inline constexpr std::int64_t kMaxCounted = 10'000;
struct Waiting {
  std::int64_t pending = 0;  // all that is to be published, held and retried events included
  std::int64_t held = 0;     // of those: behind another event of their aggregate
  std::int64_t failed = 0;   // in the retry index
  Millis oldest{0};          // age of the oldest pending one
};

class LaneTables {
 public:
  virtual ~LaneTables() = default;

  // `bad_store` with the command that makes them if the tables are missing.
  virtual Result<void> open(Deadline by) = 0;
  virtual void close() = 0;

  // Tells this outbox from all others; the default name of its lanes is made from it.
  virtual std::string identity() const = 0;

  // Raises the lane's fence and reads what a new owner begins with. `fenced`.
  virtual Result<TakenLane> take_over(const OwnedLane& lane) = 0;

  // One page of every lane; with the bodies of rows, but no more than `max_bytes` of them.
  virtual Result<Looked> look(std::span<const LaneRead> reads, std::size_t max_rows,
                              std::size_t max_bytes) = 0;

  // All heads of the retry indexes.
  virtual Result<HeadsRead> heads(std::span<const OwnedLane> lanes) = 0;

  // The next rows of the retry index behind position `behind`, of these aggregates of the lane, by
  // position. None if the lane is fenced.
  virtual Result<std::vector<Follower>> followers(const OwnedLane& lane,
                                                  const std::vector<std::string>& aggregates,
                                                  Position behind, std::size_t max_rows) = 0;

  // Those of the rows that are still PENDING.
  virtual Result<Events> fetch(int lane, const std::vector<Position>& positions) = 0;

  // All batches in one transaction; gives the fenced lanes, of which nothing was written.
  virtual Result<std::set<int>> write(std::span<const LaneBatch> batches) = 0;

  // Shows in the table that the lanes are read, and counts what waits there.
  virtual Result<Waiting> show(std::span<const OwnedLane> lanes) = 0;

  // PENDING rows that are older than `age` and that the checkpoint calls settled: nobody will ever
  // read them again. There are none, unless something else has written to the table. Makes them new
  // and gives their number.
  virtual Result<std::int64_t> sweep(const OwnedLane& lane, Millis age) = 0;

  // --- WakeUp ---

  // True if the lanes are locked now, so that writers notify; false if one is at work.
  virtual Result<bool> lock(std::span<const OwnedLane> lanes) = 0;
  virtual Result<void> unlock() = 0;
  // Until notified, until `interrupt` can be read (a file descriptor), or until `until`.
  virtual Result<void> sleep(Instant until, int interrupt) = 0;
  // The same without a lock. True if something was written meanwhile: look at once.
  virtual Result<bool> pause(Instant until, int interrupt) = 0;
  // For a session that has to show that its process runs: call it every second.
  virtual Result<void> keep_alive() = 0;
};

struct TablesOptions {
  std::string url;
  Millis statement_timeout{10'000};
};

[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LaneTables>> make_lane_tables(
    const TablesOptions& options);
[[nodiscard]] std::unique_ptr<LaneTables> postgres_tables(const TablesOptions& options);
[[nodiscard]] std::unique_ptr<LaneTables> sqlite_tables(const TablesOptions& options);

// Lanes of an outbox behind this URL.
[[nodiscard]] std::size_t lane_count(const std::string& url);

}  // namespace baton::relay
