#pragma once

// Divides a set of numbered partitions among the replicas that run it.
//
//   baton::Partitions lanes(locks, "relay/shop", 16);
//   lanes.run([&](baton::Partition& lane, std::stop_token stop) { relay(lane, stop); });
//
// Partition 3 of the set `relay/shop` is the lock `partition/relay/shop/3`, and only the lock
// decides who owns it. A replica that takes part is a member: it holds
// `partition-member/relay/shop/{node}`. `baton partition list` shows both.
//
//            free, below quota                    a member waits and we are above our quota,
//            or free for 1 s                      stop, lost
//   others' ─────────────────▶ owned (work runs) ──────────────────────────────▶ draining
//      │  ▲                       ▲                                                 │
//      │  └───────────────────────┼─────────── released, to that member ◀───────────┘
//      └── below quota, none free ┘                       when the work has returned
//          waits for one of a member above its quota
//
// Of n members, in the order of their names, the first (count mod n) have a quota of count / n + 1,
// the others of count / n. So when a replica joins, no more than its own quota of partitions move,
// and when one leaves, only those that it had. A free partition that its members leave free for 1 s
// is taken by any of them, and kept until somebody below its quota asks.
//
// The partitions of a replica that dies are owned again within its TTL and 2 s, or at once where
// the store frees the locks of the dead (postgres-advisory:). Nothing depends on a notification.
//
// Never two owners at work, unless a lease has run out under work that did not listen to its stop
// token. What such work still writes is refused by baton::fence(transaction, partition): let the
// work begin with it.
//
// Cost: each replica looks at the store once a second, with two finds, whatever the count; on top
// come its renewals, one batch a third of the TTL, and, while it waits, one batch a second.

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "baton/clock.h"
#include "baton/lease.h"
#include "baton/locks.h"

namespace baton {

namespace partitions {
class Member;
class Worker;
}  // namespace partitions

inline constexpr std::size_t kMaxPartitions = 1'024;

// A partition that this replica owns: what the work gets. Valid until the work has returned; all
// members may be called from any thread.
class BATON_EXPORT Partition {
 public:
  explicit Partition(std::shared_ptr<partitions::Worker> worker) : worker_(std::move(worker)) {}

  [[nodiscard]] std::size_t number() const;  // from 0
  [[nodiscard]] const std::string& set() const;
  [[nodiscard]] Token token() const;  // grows from one owner to the next
  [[nodiscard]] Lease& lease();

  // True while nobody else can own it and the work has not been told to end.
  [[nodiscard]] bool valid() const;

  // Why the stop token has fired, for people; empty before that.
  [[nodiscard]] std::string why_ending() const;

  // What baton::fence(transaction, partition) asks for.
  [[nodiscard]] std::vector<FenceToken> tokens() const;

 private:
  std::shared_ptr<partitions::Worker> worker_;
};

// Work that went on although its stop token had fired more than `grace` ago.
struct PartitionOverrun {
  std::string set;
  std::size_t partition = 0;
  Token token = 0;
  std::string why_ending;
  Millis since_stop{0};
};

struct PartitionOptions {
  Millis ttl{10'000};  // if a replica dies, its partitions are freed after this long

  // From the stop token to the end of renewals, 0 for one TTL: the lease of work that goes on for
  // longer runs out, so that another replica gets the partition. Such work is reported.
  Millis grace{0};
  Millis look_interval{1'000};  // between looks at the store; at most 1 s keeps what is said above
  std::string region = std::string(kDefaultRegion);
  Metadata metadata;  // shown with this replica
  Clock* clock = nullptr;

  // Called on threads of this class: be quick, do not throw, do not call stop().
  std::function<void(const PartitionOverrun&)> on_overrun = {};
  // The work threw, the store could not be asked (told once an outage), or this replica is kept
  // out (told once): another live one has its name, or divides the set by another count.
  std::function<void(const Error&)> on_error = {};
};

// Takes part in one set. A process may have many, on one client or several. Who this replica is to
// the others is the owner of its LockClient: two of one name are never members at the same time.
//
// All members of a set use one count. A replica with another count takes nothing as long as one of
// them is there, so that a new count begins when the last owner under the old one has gone.
class BATON_EXPORT Partitions {
 public:
  // Runs on a thread of its own for each partition that this replica owns. Work that returns
  // before it is told to, or throws, gives the partition up, and for 1 s, doubled up to 30 s while
  // that goes on, this replica takes no other: a replica that cannot work leaves it to the others.
  // So does a replica that has no thread left for the work.
  // A std::stop_callback on the stop token may run on the thread that keeps all leases of the
  // client: it must neither block nor throw.
  using Work = std::function<void(Partition&, std::stop_token)>;

  // `set` is one or more parts, as in "relay/shop"; `count` is 1 to kMaxPartitions.
  Partitions(LockClient locks, std::string_view set, std::size_t count,
             PartitionOptions options = {});
  // Stops, and waits for the work, but not much longer than `grace`.
  ~Partitions();
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;

  // Takes part until it is stopped, by `stop` or by stop(). A store in trouble never ends it. An
  // error means that it cannot work as it is: a bad name or count, a TTL that the store refuses, a
  // policy that denies it.
  Result<void> run(const Work& work, const std::stop_token& stop = {});

  // The same on a thread of its own. What ends it early is told to on_error. `unavailable` if no
  // thread can be started; start() may be called again then.
  Result<void> start(Work work);

  // For good. The other replicas see at once that this one leaves; each partition goes to the next
  // owner when its work has returned. Returns when all is released; inside the work it only makes
  // the stop tokens fire. With a store that hangs it takes up to 5 s longer than the work.
  void stop();

  // The partitions whose work runs here and has not been told to end.
  [[nodiscard]] std::vector<std::size_t> owned() const;

 private:
  std::shared_ptr<partitions::Member> member_;
  std::thread thread_;
};

// A set as the store shows it.
struct PartitionMember {
  std::string node;
  std::size_t quota = 0;
  std::size_t owned = 0;
  Token token = 0;
  Millis member_for{0};
  Metadata metadata;
};

struct PartitionOwner {
  std::size_t number = 0;
  std::string node;  // empty: free
  Token token = 0;
  Millis owned_for{0};
  Millis expires_in{0};
  bool ending = false;  // revoked: its work ignored the stop token, or somebody broke the lock
  std::vector<std::string> waiting;
};

struct PartitionSet {
  std::string name;
  std::size_t count = 0;
  std::vector<PartitionMember> members;    // by name, which is by rank
  std::vector<PartitionOwner> partitions;  // by number, all of them
};

// The sets that have members or owners, or the one of that name; ordered by name. Two finds, more
// with thousands of locks. Block for `timeout`.
[[nodiscard]] BATON_EXPORT Result<std::vector<PartitionSet>> partition_sets(
    LockClient& locks, std::string_view set = {}, std::string_view region = kDefaultRegion,
    Millis timeout = Millis(10'000));

// The lock behind a partition.
[[nodiscard]] BATON_EXPORT Result<LockName> partition_lock(
    std::string_view set, std::size_t number, std::string_view region = kDefaultRegion);

}  // namespace baton
