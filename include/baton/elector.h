#pragma once

// Of the replicas of a service, one leads.
//
//   baton::Elector elector(locks, "outbox");
//   elector.run([&](baton::Leadership& term, std::stop_token stop) { publish_all(term, stop); });
//
// The election `outbox` is the lock `leader/outbox`, held for `leading`: `baton lock find --subject
// leader` shows every leader and who waits to become one.
//
//                 granted                stop token fires             work has returned
//   following ──────────────▶ leading ──────────────────────▶ ending ──────────────────▶ released
//       ▲                     (work runs)  lost, revoked,    (grace, then on_overrun)       │
//       │                                  resign, transfer,                                │
//       └───────────────────────────────── stop, returned ◀─────────────────────────────────┘
//                 at once after a loss, after `cooldown` if given up, after a backoff if it threw
//
// The lock is let go only when the work has returned, so nobody else leads before that, unless the
// lease has run out under work that did not listen. Such work is reported, and what it still writes
// is refused by baton::fence(transaction, term).

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "baton/clock.h"
#include "baton/lease.h"
#include "baton/locks.h"

namespace baton {

namespace election {
class ElectionLoop;
class Term;
}  // namespace election

// Who leads, as the store shows it.
struct Leader {
  std::string node;  // the owner of its LockClient
  Token term = 0;    // grows from one leader to the next; 0 for a program that is not Baton
  Millis led_for{0};
  std::chrono::system_clock::time_point since;  // led_for before now, by the clock of this machine
  Metadata metadata;
  bool leaving = false;        // has been asked to go, and has not gone yet
  std::size_t candidates = 0;  // how many wait to be next
  GrantId grant;
};

// One term of office: what the work gets. Valid until the work has returned; all members may be
// called from any thread.
class BATON_EXPORT Leadership {
 public:
  explicit Leadership(std::shared_ptr<election::Term> term) : term_(std::move(term)) {}

  [[nodiscard]] Token term() const;
  [[nodiscard]] const std::string& election() const;

  // True while nobody else can lead and nobody has asked the work to end.
  [[nodiscard]] bool valid() const;

  // Why the stop token has fired, for people; empty before that.
  [[nodiscard]] std::string why_ending() const;

  // Makes the stop token fire. The lock goes to the next candidate when the work has returned.
  void resign();
  [[nodiscard]] Lease& lease();

  // What baton::fence(transaction, leadership) asks for.
  [[nodiscard]] std::vector<FenceToken> tokens() const;

  [[nodiscard]] const std::string& key() const;
  [[nodiscard]] Mode mode() const;
  [[nodiscard]] Token token() const { return term(); }

 private:
  std::shared_ptr<election::Term> term_;
};

// Work that went on although its stop token had fired more than `grace` ago.
struct Overrun {
  std::string election;
  Token term = 0;
  std::string why_ending;
  Millis since_stop{0};
  bool still_leads = false;  // it resigned or was stopped, and keeps the lock as long as it works
};

struct ElectorOptions {
  Millis ttl{10'000};            // how long a leader that dies or is cut off keeps others waiting
  Millis grace{5'000};           // from the stop token to on_overrun
  Millis retry_interval{1'000};  // between tries, where a store has no queue to wait in or fails
  Millis cooldown{500};          // after giving leadership up, before standing again
  Millis look_interval{2'000};   // how often a follower looks who leads, if on_new_leader is set
  std::string region = std::string(kDefaultRegion);
  Metadata metadata;  // said of this replica while it leads
  Clock* clock = nullptr;

  // Which candidate should lead. When a term ends, the lock goes to the candidate of the highest
  // priority that waits, and of several to the first in the queue; one without a priority counts as
  // 0. Give all replicas of an election a priority or none: one without does not look at those of
  // others. Needs a store that hands over to a named node, which postgres-advisory: does not.
  std::optional<int> priority;
  bool preempt = false;     // also take over from a leader of a lower priority, by asking it to go
  bool never_lead = false;  // do not stand: only tell on_new_leader who leads

  // Whether this replica is fit to lead; an error says why not. Asked every health_interval on a
  // thread of its own, and one that has not answered for that long counts as an error. Until the
  // first good answer, and after a bad one, this replica does not stand; if it leads, the stop
  // token fires. It must return: a run that ends waits for it.
  std::function<Result<void>()> healthy = {};
  Millis health_interval{0};  // 0: a third of ttl

  // Runs first thing in every term, on the thread of the work and before it: show the term to the
  // fence of the data, as in
  //   .fence_first = [&](auto tokens) { return baton::fence_alone(connection, tokens); }
  // Until a leader has done so, a fence that is not beside the locks does not know of it and lets
  // its predecessor write. On an error the work does not run: it counts as work that threw.
  std::function<Result<void>(std::span<const FenceToken>)> fence_first = {};

  // Called on threads of the elector: be quick, do not throw, do not call stop().
  std::function<void(const Leader&)> on_new_leader = {};  // also when it is this replica
  std::function<void(const Overrun&)> on_overrun = {};
  std::function<void(const Error&)> on_error = {};  // the work threw, a look at the store or
                                                    // the health check failed
};

// For the form that does not block.
struct ElectorCallbacks {
  // This replica leads. Start the work elsewhere and return.
  std::function<void(Leadership&)> on_elected;
  // It has to end. Return when the work has: the lock is let go, or acknowledged as lost, then.
  std::function<void(Leadership&, const std::string& why)> on_lost;
};

// Takes part in one election. Electors are independent of each other: a process may have many, on
// one client or several. Who this replica is to the others is the owner of its LockClient.
class BATON_EXPORT Elector {
 public:
  // A std::stop_callback on its stop token runs on the thread that makes it fire. That may be the
  // one that keeps all leases of the client: it must neither block nor throw.
  using Work = std::function<void(Leadership&, std::stop_token)>;

  // `name` is one or more parts, as in "outbox" or "views/orders".
  Elector(LockClient locks, std::string_view name, ElectorOptions options = {});
  // Stops, and waits for the work, but not much longer than `grace`.
  ~Elector();
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  // Runs the work on this thread whenever this replica leads, until it is stopped. Work that
  // returns gives leadership up; so does work that throws, which is reported, and the replica
  // stands again after a backoff. A store in trouble never ends it, whether it is down, full,
  // restored without its schema or refuses our rights: that is told to on_error, and the replica
  // stands on, with a backoff of up to 30 s. An error means that this election cannot be held as
  // it is: a bad name, a TTL that the store refuses, a policy that denies it.
  Result<void> run(const Work& work, const std::stop_token& stop = {});

  // The same on a thread of its own. What ends it early is told to on_error.
  Result<void> start(ElectorCallbacks callbacks);

  // For good. Returns when the work has ended and the lock is released; inside the work it only
  // makes the stop token fire.
  void stop();

  [[nodiscard]] bool is_leader() const;

  // Asks the store. Nothing if nobody leads.
  [[nodiscard]] Result<std::optional<Leader>> leader();

  // Ends the current term: the longest waiting candidate is next. This replica stands again after
  // the cooldown, behind all others. False if it does not lead.
  bool resign();

  // The same, with `node` next whatever its place in the queue. `denied` if it does not wait,
  // `unsupported` if the store cannot do it, `lost` if this replica does not lead.
  Result<void> transfer(const std::string& node);

 private:
  std::shared_ptr<election::ElectionLoop> loop_;
  std::thread thread_;
};

// The lock behind an election.
[[nodiscard]] BATON_EXPORT Result<LockName> election_lock(std::string_view name,
                                                          std::string_view region = kDefaultRegion);

// The same from outside, for operators. They ask the leader, which ends its work first; the answer
// is who was asked, or nothing if nobody leads.
[[nodiscard]] BATON_EXPORT Result<std::optional<Leader>> leader_of(LockClient& locks,
                                                                   const LockName& lock,
                                                                   Millis timeout = Millis(10'000));
BATON_EXPORT Result<std::optional<Leader>> resign_leader(LockClient& locks, const LockName& lock,
                                                         const std::string& reason = {});
BATON_EXPORT Result<std::optional<Leader>> transfer_leader(LockClient& locks, const LockName& lock,
                                                           const std::string& node);

}  // namespace baton
