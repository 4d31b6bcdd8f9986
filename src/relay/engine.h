#pragma once

// The one thread that reads, publishes and marks, for all lanes that this replica owns:
//
//   Partitions: a thread a lane          Engine: one thread
//   serve(partition, stop) ──adds──▶  lanes ──▶ take over ─▶ look ─▶ publish ─▶ confirms ─▶ mark
//        waits until it is over  ◀──────┴─────────────────────── one Publisher, one window
//
// Events that are in memory do not wait for the database: confirms make room, and it is filled
// again before the next marks and the next look.
//
// A lane whose partition is lost is dropped at once, with all that is in memory of it. One that is
// told to end is drained first: nothing more is published, what is unconfirmed is waited for and
// marked. Trouble with the database drops the memory of all lanes, and they are taken over again;
// trouble with the broker drops nothing.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/partitions.h"
#include "baton/relay.h"
#include "relay/bodies.h"
#include "relay/interrupt.h"
#include "relay/lane_tables.h"
#include "relay/look.h"
#include "relay/wakeup.h"

namespace baton::relay {

// Between tries to reach a database or broker that is away.
inline constexpr Millis kFirstBackoff{100};
inline constexpr Millis kMaxBackoff{1'000};
// How often each lane tries a route that does not answer, with one message.
inline constexpr Millis kAskAgain{60'000};

class Engine {
 public:
  Engine(std::unique_ptr<LaneTables> tables, std::shared_ptr<Broker> broker, RelayOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Until `stop`, and then until the lanes have gone.
  void run(const std::stop_token& stop);

  // The work of a partition. Returns when it is over.
  void serve(Partition& partition, const std::stop_token& stop);

  // LaneTables::identity(), once the tables have been open.
  [[nodiscard]] std::string identity() const;
  void wait_for_identity(const std::stop_token& stop) const;

  // Whether this replica owns lane 0: its owner does the work that one replica does for all.
  [[nodiscard]] bool has_first_lane() const;

  [[nodiscard]] RelayStats stats() const;

 private:
  struct Lane {
    explicit Lane(const Partition& of);

    Partition partition;
    const OwnedLane owned;
    std::optional<Look> look;  // none: to be taken over
    Bodies events;             // of rows that the look knows, not of all
    std::uint64_t memory = 0;  // a number that is never used twice
    std::size_t unconfirmed = 0;
    std::optional<Instant> drain_until;

    // Under the mutex of the engine:
    bool ending = false;
    bool lost = false;
    bool over = false;
  };
  using LanePtr = std::shared_ptr<Lane>;

  struct InFlight {
    LanePtr lane;
    std::uint64_t memory = 0;
    Row row;
    // For on_event, if there is one:
    event::WallTime occurred_at;
    std::string event_id;
    std::string type;
    std::string correlation_id;
    bool overdue = false;  // counted in the window and by its lane no more
  };
  struct SentBatch {
    std::uint64_t first = 0;
    std::size_t count = 0;
    Instant at;
  };
  struct Outbound {
    std::vector<InFlight> rows;
    std::vector<Message> messages;  // of the rows, and behind them some that were sent before

    Message& next_message() {
      if (rows.size() > messages.size()) messages.emplace_back();
      return messages[rows.size() - 1];
    }
    // Keeps the memory of the messages, all but that of their bodies, for the next ones.
    void clear() {
      const std::size_t used = std::min(rows.size(), messages.size());
      for (std::size_t i = 0; i < used; ++i) std::string().swap(messages[i].body);
      rows.clear();
    }
  };

  // engine.cc
  void pass();
  [[nodiscard]] Result<bool> work();
  void sync_lanes();
  [[nodiscard]] bool is_over(Lane& lane, bool ending, bool lost);
  void finish(const LanePtr& lane);
  void drop_memory(Lane& lane);
  void drop_fenced(const std::set<int>& fenced);
  void connect();
  void database_trouble(const Error& error);
  void report();
  Result<bool> take_over_lanes();
  Result<bool> look();
  Result<bool> read_heads();
  Result<void> add_followers(Lane& lane, const std::vector<Head>& heads);
  Result<void> keep_house();
  Result<void> rest();
  Result<void> sleep();
  [[nodiscard]] bool idle() const;
  [[nodiscard]] Instant next_due() const;
  [[nodiscard]] std::vector<OwnedLane> owned() const;
  void tell(RelayEvent event) const;

  // engine_publish.cc
  Result<bool> refill();
  Result<bool> publish();
  [[nodiscard]] bool can_publish(Instant now);
  Result<void> prepare_publisher();
  Result<void> visit_broker(Instant now);
  Result<void> gather(const LanePtr& lane, Outbound& out);
  Result<void> fetch_missing(Lane& lane, const std::vector<Row>& rows);
  void send(Outbound& out);
  bool collect_confirms(Deadline by);
  void confirmed(const Confirm& confirm, Instant now);
  void confirmed_late(InFlight&& sent, const Confirm& confirm, Instant now);
  bool find_overdue(Instant now);
  void give_up_on(InFlight& sent, Instant now);
  [[nodiscard]] std::size_t awaited() const { return in_flight_.size() - overdue_; }
  void count(InFlight&& sent, const Confirm& confirm);
  void broker_trouble(const Error& error);
  Result<bool> write_marks();

  const std::unique_ptr<LaneTables> tables_;
  const std::shared_ptr<Broker> broker_;
  const RelayOptions options_;
  const LookOptions look_options_;
  const Interrupt interrupt_;

  // Only the thread of run() uses these.
  std::vector<LanePtr> lanes_;
  std::unique_ptr<Publisher> publisher_;
  bool declared_ = false;
  Outbound outbound_;                                      // only while it is sent
  std::unordered_map<std::uint64_t, InFlight> in_flight_;  // by tag
  std::deque<SentBatch> sent_;                             // younger than confirm_within
  std::size_t overdue_ = 0;                                // of those in flight
  std::map<std::string, std::size_t> silent_routes_;       // and how many are overdue there
  Window window_;
  WakeUp wakeup_;
  bool open_ = false;
  std::size_t first_lane_ = 0;  // that may publish first: each in turn
  std::uint64_t last_memory_ = 0;
  Instant connect_at_{};
  Instant publish_at_{};
  Instant visit_at_{};
  Instant heads_at_{};
  BootClock::duration heads_took_{0};
  Instant show_at_{};
  Instant sweep_at_{};
  Instant alive_at_{};
  Millis database_backoff_{0};
  Millis broker_backoff_{0};
  Millis confirm_wait_{1};
  std::optional<Instant> unwritten_since_;
  std::optional<Error> database_trouble_;
  std::optional<Error> broker_trouble_;
  std::string reported_;
  RelayStats counts_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<LanePtr> arriving_;
  std::string identity_;
  bool has_first_lane_ = false;
  bool running_ = true;
  RelayStats stats_;
};

}  // namespace baton::relay
