#pragma once

#include <memory>
#include <string>

#include "baton/locks.h"
#include "baton/observe.h"
#include "runtime/batcher.h"
#include "runtime/held_lease.h"
#include "runtime/keeper.h"
#include "runtime/wait_hub.h"

namespace baton {

// What all copies of a LockClient and all of its leases share.
class LockClient::Core : public std::enable_shared_from_this<LockClient::Core> {
 public:
  static std::shared_ptr<Core> make(std::shared_ptr<LockStore> store, ClientOptions options,
                                    Policy policy);
  ~Core();

  Result<Lease> acquire(std::vector<LockName> set, const AcquireOptions& options);
  void acquire_async(std::vector<LockName> set, AcquireOptions options,
                     std::function<void(Result<Lease>)> then);
  Result<Reply> submit(Request& request, Millis timeout);

  [[nodiscard]] LockStore& store() { return *store_; }
  [[nodiscard]] Clock& clock() { return *clock_; }
  [[nodiscard]] runtime::Keeper& keeper() { return keeper_; }
  [[nodiscard]] runtime::WaitHub& hub() { return hub_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const std::string& owner() const { return owner_; }
  [[nodiscard]] const Capabilities& can() const { return can_; }
  [[nodiscard]] ClientObserver* observer() const { return observer_.get(); }

 private:
  Core(std::shared_ptr<LockStore> store, ClientOptions options, Policy policy);

  // The last reference may go in a callback, on our own thread, which cannot join itself.
  static void destroy(Core* core);

  // What an acquire went through, for the observer.
  struct Course {
    bool waited = false;
    std::optional<std::chrono::nanoseconds> handover;
  };
  Result<Lease> ask(const std::vector<LockName>& set, const AcquireOptions& options,
                    Course& course);
  std::function<void(Result<Lease>)> told(LockName name, Millis ttl,
                                          std::shared_ptr<const Course> course,
                                          std::function<void(Result<Lease>)> then) const;

  Result<Request> prepare(const std::vector<LockName>& set, const AcquireOptions& options);
  Result<Lease> lease(const std::vector<LockName>& set, const Request& request, Reply reply,
                      Instant sent);
  // `so_far` is why it does not have the lock yet; `queued`, whether it stands in the queue.
  Result<Lease> wait(const std::vector<LockName>& set, const Request& request, Instant deadline,
                     Instant from, Error so_far, bool queued, const std::stop_token& stop,
                     Course& course);

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
  std::unique_ptr<Watch> watch_;
};

}  // namespace baton
