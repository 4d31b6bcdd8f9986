#pragma once

// What a relay does with the events of one lane: which rows are new, which to publish next, what to
// write back, and how far the lane is done. A pure class: snapshots, rows and confirms go in,
// reads, messages and marks come out. No I/O, no clock, no threads; tests/explore/relay_world.h
// runs it in every order of commits, looks, confirms, crashes and take-overs.
//
//            a look shows it              confirmed: taken
//   new row ────────────────▶ queued ─────────────────────────▶ SENT
//                               │ ▲ │
//              refused, unknown │ │ │ returned: retry (an attempt), or FAILED after the last
//                               └─┘ │ its route refuses for 1 s, or no confirm comes: retry (no
//                                   │ attempt)
//                                   ▼
//                             retry index ──── head of its aggregate and due ───▶ queued
//                                   ▲
//                                   └── hold: looked at while its aggregate is in the index
//
// New rows are the difference of two snapshots: those that are visible now and were not at the last
// look. So a transaction that commits late is not skipped, a long one does not stop the others, and
// of one aggregate the order is that in which its transactions became visible. (A cursor by
// position skips late commits, and the order of xids is not that of an aggregate: a transaction has
// its xid from its first write, and waits for the aggregate later.)
//
// Of one aggregate, one event is unconfirmed at a time. A row is settled when its mark is
// committed: SENT, or in the retry index. `seen`, from which the next owner reads, is the snapshot
// of the last look that is settled with all looks before it.
//
// Rows of one aggregate leave the retry index in the order of their positions: the lowest one is
// its head, and a head that is held is due. Nothing has to release the followers of an event.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "baton/broker.h"
#include "baton/clock.h"
#include "baton/export.h"
#include "relay/snapshot.h"

namespace baton::relay {

using Position = std::int64_t;

struct Row {
  Position position = 0;
  Xid xid = 0;
  std::string aggregate;
  std::string route;  // exchange and routing key: what a full queue refuses
  std::size_t bytes = 0;
  int attempts = 0;
};

// One page of a look, for the database: PENDING rows outside of the retry index.
struct BATON_EXPORT Read {
  Snapshot known;               // of the look before: what it shows has been read
  std::optional<Snapshot> now;  // that of the first page; empty for the first page itself, whose
                                // statement also gives its own snapshot
  Position behind = 0;          // the last position of the page before

  // What the WHERE of the statement means. `snapshot` is `now`, or that of the statement.
  [[nodiscard]] bool takes(Xid xid, Position position, const Snapshot& snapshot) const;
};

struct Page {
  Snapshot now;           // of the statement that read the first page
  std::vector<Row> rows;  // by position
  bool more = false;
};

// The first row of an aggregate in the retry index.
struct Head {
  Row row;
  bool due = false;
  bool held = false;  // it waited for another one, which has gone
};

// A row of the retry index behind the head of its aggregate.
struct Follower {
  Row row;
  bool held = false;  // else it has failed, or has a time of its own
};

// A row in the index is due if it is the head of its aggregate, PENDING, and its time has come.
// Held rows have no time of their own: they are due when they have become the head.
[[nodiscard]] BATON_EXPORT bool is_due(bool pending, bool held, bool time_has_come);

struct Mark {
  enum class Kind : std::uint8_t {
    sent,
    retry,   // in the retry index, due after `delay`
    hold,    // in the retry index, due as its aggregate's head
    failed,  // all attempts used
  };
  Kind kind = Kind::sent;
  Position position = 0;
  int attempts = 0;  // used so far
  Millis delay{0};
  bool indexed = false;  // of a failed row: in the retry index, so that its aggregate waits
  std::string error;     // why; of `retry` and `failed`
  bool operator==(const Mark&) const = default;
};

// To be written in one transaction, fenced by the lane's token.
struct Batch {
  std::vector<Mark> marks;
  std::optional<Snapshot> seen;  // the new checkpoint, true once the marks are written
  [[nodiscard]] bool empty() const { return marks.empty() && !seen; }
};

// How much may be unconfirmed, over all lanes of a publisher.
struct BATON_EXPORT Window {
  std::size_t max_messages = 1'000;
  std::size_t max_bytes = 1 << 20;
  std::size_t messages = 0;
  std::size_t bytes = 0;

  [[nodiscard]] bool fits(std::size_t more) const;  // one message always does
  void add(std::size_t more);
  void remove(std::size_t fewer);
};

enum class OnFailed : std::uint8_t {
  hold,  // the aggregate waits until somebody retries or discards the event
  skip,  // its followers go on without it
};

struct LookOptions {
  int max_attempts = 10;
  Millis first_delay{10'000};  // doubles with each attempt, ± 20%
  OnFailed on_failed = OnFailed::hold;
  Millis route_wait{1'000};   // so long a row waits in memory for a route that refuses
  Millis first_backoff{100};  // of such a route; doubles up to max_backoff
  Millis max_backoff{5'000};
  std::size_t max_rows = 1'000;  // in memory: no page is read while there are half as many
};

// Whom a confirm is about, and so what it costs.
enum class Blame : std::uint8_t {
  nobody,  // taken
  event,   // returned: uses an attempt
  route,   // refused: the route backs off, no attempt
  relay,   // unknown: published again, no attempt
};
[[nodiscard]] BATON_EXPORT Blame blame_for(PublishOutcome outcome);

// Before the attempt behind this one: first_delay, doubled each time, ± 20% by the position.
[[nodiscard]] BATON_EXPORT Millis retry_delay(const LookOptions& options, int attempts,
                                              Position position);

// What a new owner of a lane begins with. The transaction that raises the lane's fence reads the
// checkpoint and the aggregates of the retry index, and if `restamp`, gives the transaction's own
// xid to all PENDING rows outside of the index: they come from another cluster, by a dump, and
// their xids say nothing here. A copy of this cluster that went its own way, as a promoted standby,
// has the same identifier; its checkpoint is told by transactions that are still to come here.
struct TakeOver {
  Snapshot from;
  bool restamp = false;
};
[[nodiscard]] BATON_EXPORT TakeOver take_over(const Snapshot& seen, std::string_view saved_by,
                                              std::string_view cluster, Xid xmax);

class BATON_EXPORT Look {
 public:
  // `in_index`: the aggregates that have rows in the retry index.
  Look(Snapshot from, std::set<std::string> in_index, LookOptions options = {});

  // The next page; none while memory is full.
  [[nodiscard]] std::optional<Read> next_read() const;
  void add(const Read& read, Page page);
  // The look that was begun has more pages.
  [[nodiscard]] bool between_pages() const { return page_.has_value(); }

  // All heads of the lane's retry index. Those that are due are queued; of a route in trouble, one
  // that asks how it is. The others stay in the index, which may be long, and are due later.
  void add_heads(const std::vector<Head>& heads, Instant now);
  // Then: the aggregates of those heads that were held, and so of rows that may go one after the
  // other. Without their followers in memory, each row would need a read of the whole index.
  [[nodiscard]] std::vector<std::string> flowing(const std::vector<Head>& heads) const;
  // Rows behind the heads of flowing(), by position. Those up to the first that is not held are
  // queued; they stay in the index until they are marked.
  void add_followers(std::vector<Follower> followers);

  // What is to be published now, in this order; it counts in the window until it is confirmed.
  [[nodiscard]] std::vector<Row> publish(Window& window, Instant now);
  void confirm(Position position, PublishOutcome outcome, const std::string& why, Instant now);
  // A confirm that does not come, as from a queue without a majority of its nodes: the trouble of
  // the route. The event goes into the retry index, without an attempt, and may be published twice.
  void overdue(Position position, const std::string& why);
  // It was overdue and has been taken after all: it is SENT, wherever it waits. A broker that is
  // slow all the time would otherwise be given the same events again and again.
  void taken_late(const Row& row, Instant now);
  // Nothing goes to a route that does not answer but one message from `until` on; for all lanes of
  // a publisher, of which one has noticed it. Until it is opened, or something is confirmed there.
  void shut(const std::string& route, Instant until);
  void open(const std::string& route) { routes_.erase(route); }

  // What is to be written next; the same again until written() says that it is committed.
  [[nodiscard]] Batch batch(std::size_t max_marks) const;
  void written(const Batch& batch);

  [[nodiscard]] std::size_t unconfirmed() const { return unconfirmed_.size(); }
  [[nodiscard]] std::size_t undecided() const {
    return undecided_;
  }  // rows in memory without a mark
  [[nodiscard]] std::size_t unwritten() const { return decided_.size(); }
  [[nodiscard]] std::size_t held() const { return held_.size(); }  // aggregates
  // When a route in trouble may be asked again how it is, by what is due in the retry index.
  [[nodiscard]] std::optional<Instant> next_ask() const;
  // When publish() has something to do by the clock alone: a route's backoff or a row's wait ends.
  [[nodiscard]] std::optional<Instant> next_time() const;

  // All that it remembers, on one line.
  [[nodiscard]] std::string describe() const;

 private:
  struct Queued {
    Row row;
    std::uint64_t look = 0;              // 0: from the retry index
    std::optional<Instant> waits_since;  // for its route
  };
  struct Decided {
    Mark mark;
    std::string aggregate;
    std::uint64_t look = 0;
  };
  struct Taken {  // a look
    std::uint64_t number = 0;
    Snapshot now;
    std::size_t unsettled = 0;
  };
  struct Paging {
    Snapshot now;
    Position behind = 0;
  };
  struct Backoff {
    Millis delay{0};
    Instant until;
    Position probe = 0;   // the one message that may try
    bool silent = false;  // does not answer: nothing waits for it in memory
  };

  void enqueue(Row row, std::uint64_t look);
  void decide(const Queued& queued, Mark mark);
  // Its aggregate waits in the retry index from now on, behind `queued`, which has its mark.
  void hold_followers(const std::string& aggregate);
  void next_of(const std::string& aggregate);
  void returned(const Queued& queued, const std::string& why);
  void refused(Queued& queued, Instant now);
  [[nodiscard]] bool route_is_open(const Row& row, Instant now);
  void give_up_waiting(Instant now);
  [[nodiscard]] bool may_ask(const std::string& route, Instant now) const;
  [[nodiscard]] Instant gives_up(const Queued& queued, const Backoff& route) const;

  LookOptions options_;
  Snapshot known_;              // of the last look whose pages have all been read
  std::optional<Paging> page_;  // of a look that is being read
  std::uint64_t last_look_ = 0;
  std::deque<Taken> looks_;    // those that are not settled, and the one that is being read
  bool settled_rows_ = false;  // since the last checkpoint

  // By aggregate; only the first is published. Most have but one: a list is small.
  std::unordered_map<std::string, std::list<Queued>> queues_;
  std::map<Position, std::string> ready_;  // the first ones that are not unconfirmed
  std::map<Position, std::string> unconfirmed_;
  std::set<std::string> held_;  // aggregates with rows in the index, or with a mark for it to come
  std::map<std::string, Backoff> routes_;  // those that refuse or do not answer
  std::deque<Decided> decided_;            // in the order of the decisions
  std::size_t undecided_ = 0;
};

}  // namespace baton::relay
