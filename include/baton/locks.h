#pragma once

// The way in: a LockClient gives leases.
//
//   auto locks = baton::open("postgres://localhost/shop").value();
//   auto lease = locks.acquire({.subject = "report", .resources = {"2026-11"}},
//                              {.ttl = 30s, .wait = 5s});
//   if (!lease) return tell(lease.error());

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "baton/clock.h"
#include "baton/lease.h"
#include "baton/name.h"
#include "baton/policy.h"
#include "baton/store.h"

namespace baton {

class ClientObserver;  // baton/observe.h

struct AcquireOptions {
  Mode mode = Mode::X;
  Millis ttl{30'000};      // renewed every third of it
  Millis wait{0};          // 0: busy at once; at most 24 h
  Millis at_least_for{0};  // stays taken so long even if released before
  Metadata metadata;
  std::optional<std::int64_t> if_ordinal_below;  // else superseded
  NoteChange note;                               // written with the grant
  std::stop_token stop;  // ends the wait: cancelled. Fired before the call: the store is not asked
};

struct BreakOptions {
  std::string reason;
  bool immediately = false;  // do not wait for the holder: it may still be writing
  GrantId only;              // one holder of several
};

struct ClientOptions {
  std::string owner;                  // who we are, for people; default host:pid
  Clock* clock = nullptr;             // outlives the client, also where that ends in the background
  std::size_t max_waiting = 100'000;  // acquires waiting at once in this client
  std::shared_ptr<ClientObserver> observer = nullptr;
  Millis open_timeout{10'000};  // for open() and make(): to connect and to read the schema
};

// Thread-safe and cheap to copy: copies share one client, and so do its leases. The last of them to
// go stops its threads and sends what is left to release. It waits for that for at most 2 s; if the
// store does not answer by then, the rest ends in the background, callbacks included.
//
// Each call below says which errors it gives, how long it blocks at most, also if the store hangs,
// and what `stop` does. Two things are the same for all:
//
//   one request     is given up after the store's own limit and half a second, that is
//                   Capabilities::apply_limit + 500 ms: 5.5 s for most stores. No call waits for
//                   the deadline of another caller
//   store errors    unavailable: not reached, or not in time; retryable. unauthorized, bad_store:
//                   an operator must act. Any call that asks the store may give them
//
// What an error means for the caller: with in_doubt, the request may have taken effect all the
// same. A grant that comes of it is given back in the background, but a note stays written, and
// counts for if_ordinal_below. Without in_doubt, nothing was written. An acquire that waits repeats
// its own request after a lost answer and finds its own grant; it is not told `superseded` because
// of its own note.
//
// After a fork, a child can neither use nor release what its parent has: every call of such a
// client is bad_request, leases are not valid, and destructors do nothing. It opens its own client.
class BATON_EXPORT LockClient {
 public:
  // Reads the schema from the store: a client keeps the version that it started with.
  // Errors: the store's. Blocks for ClientOptions::open_timeout.
  static Result<LockClient> make(std::shared_ptr<LockStore> store, ClientOptions options = {});

  // One name, queueing for it for `wait`.
  //
  // Errors, before the store is asked: bad_name; bad_request, an option out of range; denied, by
  // the policy; unsupported, by this store; cancelled, `stop` had fired. From the store:
  //   busy         somebody holds it, and `wait` is 0
  //   timed_out    `wait` is over
  //   superseded   by if_ordinal_below
  //   denied       the schema has changed since the client was made, or what the store keeps for
  //                the name is damaged
  //   cancelled    `stop` has fired during the wait
  //   unavailable  as above; or max_waiting acquires wait already; or the reply took longer than
  //                the TTL, so that the lease would be over
  // timed_out, cancelled and unavailable may be in doubt.
  //
  // Blocks for `wait` and 200 ms, or for one request if that is longer. It is `wait` and one
  // request if a grant came too late for its TTL and is asked for anew.
  //
  // `stop` ends the wait at once, but not a first request that is under way: that one is waited
  // for, and if it is granted, the lease is returned.
  Result<Lease> acquire(const LockName& name, const AcquireOptions& options = {});

  // The same with a `wait` of 0: never timed_out, blocks for one request, and `stop` counts only
  // before the call.
  Result<Lease> try_acquire(const LockName& name, AcquireOptions options = {});

  // As acquire, but all of the names or none, under one lease. Also bad_request for no name at all,
  // and unsupported for more than Capabilities::max_set with their ancestors.
  Result<Lease> acquire_all(const std::vector<LockName>& set, const AcquireOptions& options = {});

  // As acquire_all, but does not block, and needs no thread while it waits. `then` runs once, on a
  // thread of the client, also if the store need not be asked: it must not block, and if it throws,
  // the process ends. (In a forked child it runs inside the call.)
  //
  // `then` gets the errors of acquire, and `cancelled`, in doubt, if the client closes first. It
  // comes by the end of the wait, or when the request that is under way then has ended. After
  // `stop` it comes at once, or when the request that is under way has ended.
  void acquire_async(std::vector<LockName> set, AcquireOptions options,
                     std::function<void(Result<Lease>)> then);

  // Calls `ask`. What it asks for on this thread, by acquire_async() and Lease::release_async(),
  // goes to the store together when it returns, instead of one by one. `ask` must not throw.
  void ask_together(const std::function<void()>& ask);

  // Runs fn(Lease&) under the lock and releases it. If the lease was lost while fn ran, the answer
  // is `lost`, and what fn returned is dropped: fn has run to its end, but perhaps not alone.
  //
  // Errors: those of acquire, then fn has not run; and lost. A release that the store does not
  // answer is none: it is repeated in the background. Blocks as acquire does, for fn, and for 2 s
  // to release. `stop` is that of acquire: once fn runs, it has no effect. What fn throws is passed
  // on, after the release.
  template <typename Fn>
  auto with_lock(const LockName& name, const AcquireOptions& options, Fn&& fn)
      -> Result<std::invoke_result_t<Fn, Lease&>> {
    auto lease = acquire(name, options);
    if (!lease) return lease.error();
    if constexpr (std::is_void_v<std::invoke_result_t<Fn, Lease&>>) {
      std::forward<Fn>(fn)(*lease);
      return finish(*lease);
    } else {
      Result<std::invoke_result_t<Fn, Lease&>> result = std::forward<Fn>(fn)(*lease);
      if (auto finished = finish(*lease); !finished) return finished.error();
      return result;
    }
  }

  // Block for `timeout`. Errors: the store's; bad_request for an unknown mode; of get and get_all
  // also bad_name, denied if a name is damaged, and busy if the store cannot touch it at the
  // moment.
  Result<Page<LockInfo>> find(const Query& query, Millis timeout = Millis(10'000));
  Result<LockInfo> get(const LockName& name, Millis timeout = Millis(10'000));
  // Several names in one request to the store, answered in their order.
  Result<std::vector<LockInfo>> get_all(const std::vector<LockName>& names,
                                        Millis timeout = Millis(10'000));

  // Revokes the holders; gives those it hit. They learn it at once or at their next renewal. A hold
  // that was released and stays only for its at_least_for ends at once.
  //
  // Errors: the store's, which may be in doubt; bad_name; bad_request without a reason; denied if
  // the name is damaged; busy if the store cannot touch it at the moment. Nobody who holds it is no
  // error, but an empty answer. Blocks for one request, and one more for each such hold.
  Result<std::vector<HolderInfo>> break_lock(const LockName& name, const BreakOptions& options);

  // True in a forked child of the process that made it.
  [[nodiscard]] bool inherited() const;

  [[nodiscard]] const Policy& policy() const;
  [[nodiscard]] const std::string& owner() const;
  [[nodiscard]] Capabilities capabilities() const;

  class Core;  // private to src/runtime

 private:
  static Result<void> finish(Lease& lease);  // of with_lock
  explicit LockClient(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  std::shared_ptr<Core> core_;
};

// Opens the store behind a URL (memory:, sqlite:PATH, postgres://…, postgres-advisory://…,
// redis://…, etcd://… or k8s://…, as docs/stores.md describes them) and a client on it. In the
// component `baton::open`; programs that want fewer dependencies call LockClient::make themselves.
//
// Errors: bad_url; unsupported for a store that this build does not have; unavailable, unauthorized
// or bad_store from the store. open blocks for ClientOptions::open_timeout, the others until
// `deadline`.
[[nodiscard]] BATON_EXPORT Result<LockClient> open(std::string_view url,
                                                   ClientOptions options = {});
[[nodiscard]] BATON_EXPORT Result<std::shared_ptr<LockStore>> open_store(std::string_view url,
                                                                         Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<class StoreAdmin>> open_admin(
    std::string_view url, Deadline deadline);

// A store URL with its password hidden, for messages and logs.
[[nodiscard]] BATON_EXPORT std::string redact_url(std::string_view url);

}  // namespace baton
