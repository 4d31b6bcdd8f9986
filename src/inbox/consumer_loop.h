#pragma once

// What a consumer does, on one thread, until it is told to stop:
//
//   take deliveries ──▶ no event, or one that kills processes: into inbox_events
//        ▲         ╲──▶ the others, a batch in one transaction; if one fails, each alone
//        │                  │
//        │                  ▼ what has been decided is acknowledged
//   due retries ◀───────────┘     now and then: dead letters of the broker, retention
//
// Handlers run on a second thread (HandlerThread), whose time this one watches. While the database
// is away the deliveries stay in hand; nothing is lost with them, for they are not acknowledged.

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "baton/consumer.h"
#include "inbox/attempt.h"
#include "inbox/breaker.h"
#include "inbox/handler_thread.h"
#include "inbox/session_failures.h"

namespace baton::inbox {

class ConsumerLoop {
 public:
  ConsumerLoop(std::shared_ptr<Broker> broker, std::string database_url, ConsumerOptions options,
               Consumer::Handler handler);

  Result<void> run(std::stop_token stop);

  // Of Consumer::start and stop.
  std::jthread thread;
  std::mutex mutex;
  Result<void> ended;

 private:
  using Decide = std::function<Decision(Ledger, Aggregate)>;
  enum class Stored : std::uint8_t { known, kept, held };  // known: the ledger had it

  Result<void> check_options() const;
  Result<void> declare();
  [[nodiscard]] std::vector<std::string> queues(const std::string& suffix = {}) const;

  // The two connections, waited for. False: told to stop, or failure_ says why for good.
  bool connect_database();
  bool subscribe();
  void pause(const std::string& why);
  bool is_to_blame(AttemptResult& result, SessionFailures& failures) const;
  void committed() { database_nap_ = Millis{0}; }
  void wait_for_repair(const std::string& why);
  void recover(const Error& error);
  void nap(Millis time);
  bool stopping() const { return stop_.stop_requested(); }

  void pass();
  void probe();
  void take(std::size_t most);
  void process();
  bool process_alone(Delivery delivery);
  void process_batch(std::vector<Incoming> batch);
  bool run_batch(const std::vector<Incoming>& batch, AttemptResult& result, bool& overran);
  std::optional<bool> was_committed(std::int64_t transaction);
  bool withdraw(const std::vector<Incoming>& batch, const AttemptResult& result);
  void tell(const Incoming& one, Fate fate, const std::string& reason);
  bool fail_fresh(const Incoming& one, const std::string& why);
  std::optional<Stored> keep_new(const KeptMessage& kept, const Decide& decide,
                                 const std::string& error);
  void acknowledge(std::uint64_t tag) { to_acknowledge_.push_back({tag, Settle::ack}); }
  void settle();
  void drop_subscription();

  bool retry_due(bool probing);
  bool run_job(const std::shared_ptr<Attempt>& attempt, const std::function<void()>& job);
  void record_failure(const Kept& kept, const std::string& why, bool probing);
  void note_failure(const std::string& id);
  void note_success();

  void keep_house();
  bool move_dead_letters(Millis wait);
  void count_inbox();
  void note(ConsumerNote::Kind kind, std::string_view message, const Event* event = nullptr,
            int attempt = 0, const std::string& reason = {},
            std::chrono::sys_time<Millis> occurred_at = {}) const;

  void tell_user(const ConsumerNote& note) const;

  const std::shared_ptr<Broker> broker_;
  const std::string database_url_;
  const ConsumerOptions options_;
  std::shared_ptr<Handlers> handlers_;
  std::stop_token stop_;
  std::optional<Error> failure_;  // ends the consumer

  std::shared_ptr<sql::Connection> database_;
  std::unique_ptr<Subscription> subscription_;
  std::unique_ptr<Subscription> dead_letters_;
  std::deque<Delivery> in_hand_;
  std::vector<Settlement> to_acknowledge_;
  HandlerThread handler_thread_;
  int abandoned_ = 0;  // threads of handlers that never returned
  int conflicts_ = 0;  // of transactions of its own, in one pass
  Breaker breaker_;
  bool paused_ = false;
  std::string needs_;  // what a person must mend before the pause can end
  bool broker_lost_ = false;
  bool is_new_ = false;     // the subscription
  Millis database_nap_{0};  // grows until something is committed
  int refusals_ = 0;        // sessions with the database that could not be opened
  Millis broker_nap_{0};
  Instant next_dead_letters_{};
  Instant next_retention_{};
  Instant next_count_{};
};

}  // namespace baton::inbox
