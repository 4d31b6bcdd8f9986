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
};

// Thread-safe and cheap to copy: copies share one client, and so do its leases. The last of them to
// go stops its threads and sends what is left to release. It waits for that for at most 2 s; if the
// store does not answer by then, the rest ends in the background, callbacks included.
//
// How long a call may block, also if the store hangs: one request is given up after the store's own
// limit and half a second (Capabilities::apply_limit, 5 s for most stores); each call below says
// what it waits for. No call waits for the deadline of another caller.
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
  static Result<LockClient> make(std::shared_ptr<LockStore> store, ClientOptions options = {});

  // Blocks for `wait`, or for one request if that is longer. `stop` ends the wait at once, but not
  // a first request that is on its way. timed_out, cancelled and unavailable may be in doubt.
  Result<Lease> acquire(const LockName& name, const AcquireOptions& options = {});
  Result<Lease> try_acquire(const LockName& name, AcquireOptions options = {});

  // All of them or none, under one lease.
  Result<Lease> acquire_all(const std::vector<LockName>& set, const AcquireOptions& options = {});

  // Does not block, and needs no thread while it waits. `then` runs once, on a thread of the
  // client, also if the store need not be asked: it must not block, and if it throws, the process
  // ends. It comes by the end of the wait, or when the request that is under way then has ended.
  void acquire_async(std::vector<LockName> set, AcquireOptions options,
                     std::function<void(Result<Lease>)> then);

  // Runs fn(Lease&) under the lock and releases it. If the lease was lost while fn ran, the answer
  // is `lost`, and what fn returned is dropped: fn has run to its end, but perhaps not alone.
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

  // Block for `timeout`.
  Result<Page<LockInfo>> find(const Query& query, Millis timeout = Millis(10'000));
  Result<LockInfo> get(const LockName& name, Millis timeout = Millis(10'000));

  // Revokes the holders; gives those it hit. They learn it at once or at their next renewal. A hold
  // that was released and stays only for its at_least_for ends at once. Blocks for one request, and
  // one more for each such hold.
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
[[nodiscard]] BATON_EXPORT Result<LockClient> open(std::string_view url,
                                                   ClientOptions options = {});
[[nodiscard]] BATON_EXPORT Result<std::shared_ptr<LockStore>> open_store(std::string_view url,
                                                                         Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<class StoreAdmin>> open_admin(
    std::string_view url, Deadline deadline);

// A store URL with its password hidden, for messages and logs.
[[nodiscard]] BATON_EXPORT std::string redact_url(std::string_view url);

}  // namespace baton
