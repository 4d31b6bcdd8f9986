#pragma once

// The transactions in which handlers run: a batch of deliveries, a retry, and giving up. Each is a
// job of the handler thread; the loop that started it reads the result when it has returned.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/consumer.h"
#include "inbox/delivery_progress.h"
#include "inbox/handler_thread.h"
#include "inbox/tables.h"

namespace baton::inbox {

// Shared by all attempts of a consumer; outlives the consumer if a handler never returns.
struct Handlers {
  Consumer::Handler handler;
  std::function<void(Handling&)> on_give_up;
  std::function<Result<void>()> before_commit;
  Millis timeout{};
  std::int32_t max_version = 0;
  Outbox outbox;
  RetryLimits limits;
  Tables tables;
};

// A delivery that is an event.
struct Incoming {
  Delivery delivery;
  event::SentEvent sent;
};

enum class Fate : std::uint8_t {
  duplicate,
  done,
  rejected,
  held,       // behind others of its aggregate: kept, not handled
  postponed,  // not begun: the transaction had lasted long enough
};

struct AttemptResult {
  enum class Ended : std::uint8_t {
    well,
    failed,     // a handler, at `at`; rolled back
    conflict,   // with another transaction (40001, 40P01): to be repeated
    away,       // the database; nobody may know whether it was committed
    overtaken,  // a retry: others have decided meanwhile
  };
  Ended ended = Ended::well;
  std::size_t at = 0;
  bool ended_transaction = false;  // that handler did
  bool unsure = false;             // whether it did
  bool suspect = false;            // away: a handler may be why
  std::string why;
  std::vector<Fate> fates{};           // of the deliveries, in their order
  std::vector<std::string> reasons{};  // of business errors
  bool dead = false;                   // given up
};

class Attempt {
 public:
  Attempt(std::shared_ptr<const Handlers> handlers, std::shared_ptr<sql::Connection> database)
      : handlers_(std::move(handlers)), database_(std::move(database)) {}

  // Up to the commit; `progress` goes on from there. No id may be there twice.
  void handle_batch(const std::vector<Incoming>& batch, DeliveryProgress& progress);
  void handle_retry(const Kept& kept);
  // Records that a retry has failed; gives up, with the hook, if no attempts are left.
  void record_failure(const Kept& kept, const std::string& error, bool probe);

  // Something has thrown that no handler did.
  void broke(const std::string& why);

  [[nodiscard]] const AttemptResult& result() const { return result_; }
  [[nodiscard]] const HandlerLimit& limit() const { return limit_; }
  [[nodiscard]] const std::shared_ptr<sql::Connection>& database() const { return database_; }
  // The index in the batch of the event that a handler works on. May be called while it runs.
  [[nodiscard]] std::size_t current() const { return current_; }
  // What becomes of each event of the batch if all goes well. May be called while a handler runs.
  [[nodiscard]] const std::vector<Fate>& decided() const { return decided_; }
  // The id of the batch's transaction at the server, until the consumer itself commits it; 0: there
  // is none to look up. May be called while a handler runs.
  [[nodiscard]] std::int64_t transaction() const { return transaction_; }

 private:
  using Call = std::function<Handled(Handling&)>;
  // Empty `why`: it went well.
  struct Outcomes {
    Handled handled;
    AttemptResult::Ended ended = AttemptResult::Ended::well;
    bool ended_transaction = false;
    bool unsure = false;
    std::string why;
  };
  Outcomes call(const Call& handler, const Event& event, const Message& message, int attempt,
                std::string_view last_error);
  [[nodiscard]] bool transaction_is_open() const;
  Result<void> decide(sql::Transaction& transaction, const std::vector<Incoming>& batch,
                      const std::vector<std::string>& fresh);
  Result<void> hold(sql::Transaction& transaction, const Incoming& one, const Decision& decision);
  bool before_commit();
  Result<void> run_new(sql::Transaction& transaction, const std::vector<Incoming>& batch);
  void fail(const Error& error);
  void fail_commit(const Error& error);
  void end_with(const Error& error);

  const std::shared_ptr<const Handlers> handlers_;
  const std::shared_ptr<sql::Connection> database_;
  HandlerLimit limit_;
  bool called_ = false;  // a handler or the hook, in this transaction
  std::atomic<std::size_t> current_{0};
  std::atomic<std::int64_t> transaction_{0};
  // Written before the first handler gets its time limit, so a thread that sees the limit sees
  // this.
  std::vector<Fate> decided_;
  AttemptResult result_;
};

}  // namespace baton::inbox
