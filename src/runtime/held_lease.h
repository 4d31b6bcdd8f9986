#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "baton/lease.h"
#include "baton/locks.h"
#include "baton/observe.h"

namespace baton::runtime {

class Keeper;

// A granted request: what is needed to renew, convert and release it.
struct Grant {
  GrantId id;
  std::vector<LockName> names;  // as the caller asked
  std::vector<Target> targets;  // as the store was asked: targets[0] is names[0]
  std::vector<Token> tokens;    // one a target
  Note note;
  Metadata metadata;
  Millis ttl{0};
  std::int64_t schema_version = 0;
  Instant sent;  // before the request that was granted
};

// The state behind a Lease. The Lease also owns a reference to the client; this object must not,
// because the Keeper's threads share it during a renewal, and one of them could then destroy the
// client that they belong to.
class HeldLease : public std::enable_shared_from_this<HeldLease> {
 public:
  HeldLease(LockClient::Core& client, Grant grant);
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  [[nodiscard]] bool inherited() const;  // from the parent of this process: see inherited.h
  [[nodiscard]] bool valid() const;
  [[nodiscard]] Millis remaining() const;
  [[nodiscard]] std::stop_token lost() const;
  [[nodiscard]] std::string why_lost() const;

  // As in Lease: see baton/lease.h.
  [[nodiscard]] const LockName& name() const { return names_.front(); }
  [[nodiscard]] const std::vector<LockName>& names() const { return names_; }
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] GrantId id() const { return id_; }
  [[nodiscard]] Millis ttl() const { return ttl_; }
  [[nodiscard]] Mode mode() const;
  [[nodiscard]] Token token() const;
  [[nodiscard]] std::vector<FenceToken> tokens() const;
  [[nodiscard]] Note note() const;
  Result<void> set_note(NoteChange change, Millis timeout);
  Result<void> convert(Mode mode, Millis wait);
  Result<void> release(const ReleaseOptions& options);
  void release_async(NoteChange final_note, std::function<void(Result<void>)> then);
  void let_go();  // the Lease is destroyed

  // The end of with_lock: releases, unless it was released. `lost` if the lease ended before.
  Result<void> finish();

  // For the Keeper.
  [[nodiscard]] Request renewal() const;
  void renewed(Instant sent);
  void lose(Loss loss, const std::string& why);
  [[nodiscard]] Instant trusted_until() const;

  // The caller gets the lease: from now on the observer is told of it.
  void show() { shown_ = true; }

  // Makes a pending convert ask again.
  void poke();

 private:
  friend class Keeper;

  [[nodiscard]] ClientObserver* observer() const;  // null: none, or not shown yet
  [[nodiscard]] Request request(Verb verb) const;
  bool end(const std::string& why);
  Result<void> begin_release(const NoteChange& final_note);
  Request last_request(NoteChange final_note);
  Result<void> give_back(const ReleaseOptions& options, Deadline deadline);
  Result<void> given_back(Request& release, Result<Reply>& reply);
  void tell(const Result<void>& released, Instant at) const;
  [[nodiscard]] Result<void> check_successor(const std::string& successor, Deadline deadline) const;
  [[nodiscard]] bool was_lost() const;
  [[nodiscard]] Error lost_error() const;
  [[nodiscard]] Instant over() const;
  [[nodiscard]] std::size_t place_of(const LockName& name) const;

  // One change of mode: see convert.cc.
  struct Conversion {
    Request request;
    Instant deadline;  // of the wait
    Instant limit;     // of the call: a request may be in flight when the wait ends
    std::vector<Target> before = {};
    bool in_queue = false;  // it is queued in the store, or may be
    bool in_doubt = false;  // a request may have changed the mode, or may do so until late_until
    Instant late_until = Instant{};

    void doubt(Instant until);
    void heard(const Reply& reply, Instant sent);
  };
  bool take_turn(Instant deadline, Instant limit);
  void give_turn(Instant late_until);
  [[nodiscard]] Mode asked_mode() const;
  [[nodiscard]] Result<Request> conversion_to(Mode mode) const;
  Result<void> ask(Conversion& conversion);
  [[nodiscard]] std::uint64_t pokes() const;
  void await_poke(std::uint64_t seen, Instant until);
  void take_over(const std::vector<Target>& targets, const Reply& reply, Instant sent);
  void claim(const std::vector<Target>& targets);  // under the mutex
  Error give_up(const Conversion& conversion, Error error);
  void leave_queue(bool at_once, Instant limit);
  void reconcile_store(Instant from);
  void store_reconciled(const Reply& reply, Instant sent);

  LockClient::Core& client_;
  const GrantId id_;
  const std::vector<LockName> names_;
  const std::string key_;
  const Metadata metadata_;
  const Millis ttl_;
  const std::int64_t schema_version_;
  const Instant granted_at_;

  std::atomic<Instant::rep> trusted_until_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> released_{false};
  std::atomic<bool> lost_{false};  // ended before it was released
  std::atomic<bool> shown_{false};
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::vector<Target> targets_;  // modes never stronger than the store's
  std::vector<Token> tokens_;
  Note note_;
  std::string why_;
  std::condition_variable poked_;
  std::uint64_t pokes_ = 0;
  bool converting_ = false;  // a convert has the turn: one at a time
  Instant late_until_;       // until then a request of the last convert may still take effect

  // The Keeper's, under its mutex: the links of the list of this TTL, ordered by sent_.
  HeldLease* previous_ = nullptr;
  HeldLease* next_ = nullptr;
  bool kept_ = false;
  Instant sent_;
  Instant retry_at_;
};

}  // namespace baton::runtime
