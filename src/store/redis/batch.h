#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "baton/store.h"
#include "store/redis/codec.h"
#include "store/redis/pool.h"
#include "store/redis/script.h"

namespace baton::store::redis {

// What all batches of a store share. Thread-safe.
class Service {
 public:
  explicit Service(const Settings& given) : settings(given), layout(given.prefix) {}

  const Settings& settings;
  const Layout layout;
  ScriptName script;
  bool clustered = false;  // set once, before the first batch

  // Which node of a cluster has a slot, as far as we were told.
  [[nodiscard]] Node node_of(int slot) const;
  void moved(int slot, const Node& node);
  bool learn_moved(std::string_view error);
  void forget_nodes();

 private:
  mutable std::mutex mutex_;
  std::map<int, Node> nodes_;
};

// One batch on its way: in how many parcels, to which nodes, and what to do with those that come
// back unanswered.
class BatchRun {
 public:
  // Answers at once what breaks a rule, or what a cluster cannot do. `at` is a test's clock.
  BatchRun(std::span<const Request> batch, std::optional<core::StoreTime> at, Service& service);

  [[nodiscard]] bool nothing_to_send() const { return parcels_.empty(); }
  [[nodiscard]] Lane lane() const { return renewals_only_ ? Lane::renewals : Lane::requests; }
  [[nodiscard]] std::vector<Reply> replies() { return std::move(replies_); }

  // `entered` is when the caller came: nothing takes effect later than the limit after it.
  Result<std::vector<Reply>> send(Seat& seat, Instant entered, Deadline deadline);

 private:
  struct Waybill {
    Parcel parcel;
    int slot = 0;
    bool asking = false;  // a slot on the move: once, and only there
    std::optional<Node> there;
    bool delivered = false;
  };

  [[nodiscard]] std::optional<std::string> unsupported(const Request& request) const;
  void sort_out();
  Result<void> round(Seat& seat);
  Result<void> send_to(Seat& seat, const Node& node, const std::vector<Waybill*>& bills);
  Result<Commands> commands_for(Connection& connection, const std::vector<Waybill*>& bills);
  Result<void> settle(Connection& connection, Waybill& bill, const Value& value);
  Result<void> sent_elsewhere(Waybill& bill, const std::string& error);
  [[nodiscard]] Instant last_effect() const;
  [[nodiscard]] bool must_be_replicated() const;
  [[nodiscard]] bool all_delivered() const;
  Error judged(Error error) const;

  std::span<const Request> batch_;
  std::optional<core::StoreTime> at_;
  Service& service_;
  Instant entered_{};
  Deadline deadline_{};
  std::vector<Reply> replies_;
  std::vector<Waybill> parcels_;
  bool renewals_only_ = true;
  bool answered_ = false;     // a part of this batch has taken effect
  bool script_gone_ = false;  // load it before the next round
};

}  // namespace baton::store::redis
