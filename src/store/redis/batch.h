#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "baton/store.h"
#include "core/lock_table.h"
#include "store/common/contended.h"
#include "store/redis/pool.h"
#include "store/redis/script.h"
#include "store/redis/script_call.h"

namespace baton::store::redis {

// State that all batches of a store share. Thread-safe.
class StoreContext {
 public:
  explicit StoreContext(const Settings& given, Millis contended_for = kContendedFor)
      : settings(given), layout(given.prefix), contended(contended_for) {}

  const Settings& settings;
  const Layout layout;
  Scripts scripts;
  Contended contended;
  bool clustered = false;  // set once, before the first batch

  // Which node of a cluster has a slot, as far as we were told.
  [[nodiscard]] Endpoint node_of(int slot) const;
  void moved(int slot, const Endpoint& node);
  bool learn_moved(std::string_view error);
  void forget_nodes();

 private:
  mutable std::mutex mutex_;
  std::map<int, Endpoint> nodes_;
};

// One batch on its way: in how many script calls, to which nodes, and what to do with those that
// come back unanswered.
class BatchRun {
 public:
  // Answers at once what breaks a rule, or what a cluster cannot do. `at` is a test's clock.
  BatchRun(std::span<const Request> batch, std::optional<core::StoreTime> at,
           StoreContext& context);

  [[nodiscard]] bool nothing_to_send() const { return calls_.empty(); }
  [[nodiscard]] Lane lane() const { return renewals_only_ ? Lane::renewals : Lane::requests; }
  [[nodiscard]] std::vector<Reply> replies() { return std::move(replies_); }

  // `entered` is when the caller came: nothing takes effect later than the limit after it. What
  // failed because there was no connection may be sent again on another connection set.
  Result<std::vector<Reply>> send(ConnectionSet& connections, Instant entered, Deadline deadline);
  [[nodiscard]] bool unconnected() const { return unconnected_; }

 private:
  struct PendingCall {
    ScriptCall call;
    std::optional<Endpoint> there;  // a slot on the move: once, and only there
    bool sent = false;              // takes in no more
    bool done = false;
    bool refused = false;  // the server did nothing of it, and will not now
  };

  [[nodiscard]] std::optional<std::string> unsupported(const Request& request) const;
  void plan_calls();
  [[nodiscard]] Route route_of(const Request& request, bool once) const;
  void add_to_call(std::size_t place, const Route& route);
  Result<void> round(ConnectionSet& connections);
  Result<void> send_to(ConnectionSet& connections, const Endpoint& node,
                       std::span<const std::size_t> indexes);
  Result<Connection*> ready(ConnectionSet& connections, const Endpoint& node);
  Result<const Commands*> commands_for(Connection& connection,
                                       std::span<const std::size_t> indexes);
  Result<void> process_reply(Connection& connection, const Endpoint& node, std::size_t index,
                             const Value& value);
  void process_apply_reply(Connection& connection, PendingCall& pending, const Value& value);
  void process_plain_reply(std::size_t index, const Value& value);
  Result<void> send_elsewhere(PendingCall& pending, const std::string& error);
  [[nodiscard]] Instant last_effect() const;
  [[nodiscard]] bool must_be_replicated() const;
  [[nodiscard]] bool all_done() const;
  [[nodiscard]] Error judged(Error error) const;
  Result<std::vector<Reply>> answer();
  void give_up_on(std::size_t place);

  std::span<const Request> batch_;
  std::optional<core::StoreTime> at_;
  StoreContext& context_;
  Instant entered_{};
  Deadline deadline_{};
  std::vector<Reply> replies_;
  std::vector<PendingCall> calls_;
  bool renewals_only_ = true;
  bool unconnected_ = false;            // the last send() failed for want of a connection
  bool answered_ = false;               // a part of this batch has taken effect
  std::set<Endpoint> without_scripts_;  // nodes that do not know our scripts
  std::optional<Error> refusal_;
};

}  // namespace baton::store::redis
