#pragma once

#include <memory>
#include <optional>
#include <string>

#include "baton/locks.h"
#include "baton/observe.h"
#include "core/forks.h"
#include "runtime/async_acquire.h"
#include "runtime/async_batcher.h"
#include "runtime/batcher.h"
#include "runtime/held_lease.h"
#include "runtime/keeper.h"
#include "runtime/wait_hub.h"

namespace baton {

// The state that all copies of a LockClient and all of its leases share.
class LockClient::Core : public std::enable_shared_from_this<LockClient::Core> {
 public:
  static std::shared_ptr<Core> make(std::shared_ptr<LockStore> store, ClientOptions options,
                                    Policy policy);
  ~Core();

  Result<Lease> acquire(std::vector<LockName> set, const AcquireOptions& options);
  void acquire_async(std::vector<LockName> set, AcquireOptions options,
                     std::function<void(Result<Lease>)> then);
  Result<Reply> submit(Request& request, Deadline deadline);

  [[nodiscard]] LockStore& store() { return *store_; }
  [[nodiscard]] Clock& clock() { return *clock_; }
  [[nodiscard]] runtime::Keeper& keeper() { return keeper_; }
  [[nodiscard]] runtime::WaitHub& hub() { return hub_; }
  [[nodiscard]] runtime::AsyncBatcher& async_batcher() { return async_batcher_; }
  [[nodiscard]] bool on_own_thread() const;
  // Whether this process is a forked child of the one that made the client: see inherited.h.
  [[nodiscard]] bool inherited() const { return forks_ != core::forks(); }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const std::string& owner() const { return owner_; }
  [[nodiscard]] const Capabilities& can() const { return can_; }
  // How long a caller waits for one reply: the store's own limit, and time for the reply to arrive.
  [[nodiscard]] Millis request_limit() const { return can_.apply_limit + Millis(500); }
  [[nodiscard]] ClientObserver* observer() const { return observer_.get(); }

 private:
  Core(std::shared_ptr<LockStore> store, ClientOptions options, Policy policy);

  // Returns when all threads are stopped and the last requests are answered, or after
  // kCloseTimeout; the rest is then finished in the background. It uses another thread, because the
  // last reference may be dropped in a callback on one of our own threads, which cannot join
  // itself. In a forked child nothing is destroyed.
  static void destroy(Core* core);

  // When the wait hub is to ask again for an acquire that was not granted.
  struct RetryPlan {
    Instant until;
    bool queued = false;  // it has a place in the store's queue
    Error so_far;         // why it does not have the lock yet
  };

  Result<Lease> ask(std::vector<LockName> set, const AcquireOptions& options,
                    runtime::AcquireTrace& trace);
  // Takes the lock for `request`, waiting for it until `deadline`.
  Result<runtime::WaitResult> win(const LockName& name, Request& request, Instant deadline,
                                  const std::stop_token& stop, runtime::AcquireTrace& trace);
  void send(const std::shared_ptr<runtime::AsyncAcquire>& pending, Request request);
  void answered(const std::shared_ptr<runtime::AsyncAcquire>& pending, Request& request,
                Result<Reply>& reply, Instant sent);
  void granted(const std::shared_ptr<runtime::AsyncAcquire>& pending, Request& request,
               Reply& reply, Instant sent);
  void wait_in_background(const std::shared_ptr<runtime::AsyncAcquire>& pending, Request request,
                          RetryPlan plan);

  Result<Request> prepare(const std::vector<LockName>& set, const AcquireOptions& options);
  // Makes a lease of a granted acquire. Moves from the set, the request and the reply. Nothing if
  // the reply took longer than the lease lasts: then the lease is released in the background, and
  // `set` is as before.
  std::optional<Lease> lease(std::vector<LockName>& set, Request& request, Reply& reply,
                             Instant sent);
  // What to do about an acquire that was not granted at once: wait by this plan, or fail.
  Result<RetryPlan> not_granted(const Request& request, const Result<Reply>& reply, Instant sent,
                                Deadline deadline);
  void take_back(const Request& acquire, bool in_doubt);
  Result<runtime::WaitResult> wait(const LockName& name, const Request& request, Instant deadline,
                                   RetryPlan plan, const std::stop_token& stop,
                                   runtime::AcquireTrace& trace);
  [[nodiscard]] bool is_full() const;

  const std::uint32_t forks_ = core::forks();
  const std::shared_ptr<LockStore> store_;
  Clock* const clock_;
  const Capabilities can_;
  const Policy policy_;
  const std::string owner_;
  const std::string channel_;
  const std::size_t max_waiting_;
  const std::shared_ptr<ClientObserver> observer_;
  runtime::Batcher batcher_;
  runtime::Keeper keeper_;
  runtime::WaitHub hub_;
  runtime::AsyncBatcher async_batcher_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace baton
