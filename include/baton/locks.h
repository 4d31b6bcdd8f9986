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
  Millis wait{0};          // 0: busy at once
  Millis at_least_for{0};  // stays taken so long even if released before
  Metadata metadata;
  std::optional<std::int64_t> if_ordinal_below;  // else superseded
  NoteChange note;                               // written with the grant
  std::stop_token stop;                          // ends the wait: cancelled
};

struct BreakOptions {
  std::string reason;
  bool immediately = false;  // do not wait for the holder: it may still be writing
  GrantId only;              // one holder of several
};

struct ClientOptions {
  std::string owner;  // who we are, for people; default host:pid
  Clock* clock = nullptr;
  std::size_t max_waiting = 100'000;  // acquires waiting at once in this client
  std::shared_ptr<ClientObserver> observer = nullptr;
};

// Thread-safe and cheap to copy: copies share one client, and so do its leases. The last of them to
// go stops its threads. A process that forks opens a client in each child: one from before the fork
// has no threads there, and shares its parent's connections, so neither it nor a lease may be used
// or destroyed in the child.
class BATON_EXPORT LockClient {
 public:
  // Reads the schema from the store: a client keeps the version that it started with.
  static Result<LockClient> make(std::shared_ptr<LockStore> store, ClientOptions options = {});

  Result<Lease> acquire(const LockName& name, const AcquireOptions& options = {});
  Result<Lease> try_acquire(const LockName& name, AcquireOptions options = {});

  // All of them or none, under one lease.
  Result<Lease> acquire_all(const std::vector<LockName>& set, const AcquireOptions& options = {});

  // Needs no thread while it waits. `then` runs on a thread of the client, also if the store need
  // not be asked: it must not block, and if it throws, the process ends.
  void acquire_async(std::vector<LockName> set, AcquireOptions options,
                     std::function<void(Result<Lease>)> then);

  // Runs fn(Lease&) under the lock.
  template <typename Fn>
  auto with_lock(const LockName& name, const AcquireOptions& options, Fn&& fn)
      -> Result<std::invoke_result_t<Fn, Lease&>> {
    auto lease = acquire(name, options);
    if (!lease) return lease.error();
    if constexpr (std::is_void_v<std::invoke_result_t<Fn, Lease&>>) {
      std::forward<Fn>(fn)(*lease);
      return {};
    } else {
      return std::forward<Fn>(fn)(*lease);
    }
  }

  Result<Page<LockInfo>> find(const Query& query, Millis timeout = Millis(10'000));
  Result<LockInfo> get(const LockName& name, Millis timeout = Millis(10'000));

  // Revokes the holders; gives those it hit. They learn it at once or at their next renewal.
  Result<std::vector<HolderInfo>> break_lock(const LockName& name, const BreakOptions& options);

  [[nodiscard]] const Policy& policy() const;
  [[nodiscard]] const std::string& owner() const;
  [[nodiscard]] Capabilities capabilities() const;

  class Core;  // private to src/runtime

 private:
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
