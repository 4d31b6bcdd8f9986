#pragma once

#include <array>
#include <atomic>
#include <span>
#include <string_view>
#include <vector>

#include "baton/store.h"
#include "store/postgres/codec.h"
#include "store/postgres/pool.h"

namespace baton::store::postgres {

// Which names were not free lately: for those the shortest way is a detour. A guess by hash that
// forgets after a second. Thread-safe.
class Contended {
 public:
  void add(std::string_view key) { slot(key).store(now(), std::memory_order_relaxed); }
  [[nodiscard]] bool has(std::string_view key) {
    return now() - slot(key).load(std::memory_order_relaxed) < 1000;
  }

 private:
  static std::int64_t now() {
    return std::chrono::floor<Millis>(BootClock::now().time_since_epoch()).count();
  }
  std::atomic<std::int64_t>& slot(std::string_view key) {
    return seen_[std::hash<std::string_view>()(key) % seen_.size()];
  }
  std::array<std::atomic<std::int64_t>, 1024> seen_{};
};

// One batch on its way: which requests take the short way, in how many statements, and what to do
// with those that a statement leaves unsettled or fails for.
class BatchRun {
 public:
  // Answers at once what breaks a rule.
  BatchRun(std::span<const Request> batch, At at, const Settings& settings, Contended& contended);

  [[nodiscard]] bool nothing_to_send() const { return quick_.empty() && slow_.empty(); }
  [[nodiscard]] Lane lane() const { return renewals_only_ ? Lane::renewals : Lane::requests; }
  [[nodiscard]] std::vector<Reply> replies() { return std::move(replies_); }

  Result<std::vector<Reply>> send(Connection& connection, Deadline deadline);

 private:
  using Indices = std::vector<std::size_t>;

  void sort_out();
  Result<void> send_one(std::size_t index);
  Result<void> send_free(std::size_t index);
  Result<void> send_quick();
  Result<void> send_quick(const Indices& acquires, const Indices& releases, const Indices& claims);
  Result<void> send_renewals(const Indices& renewals);
  Result<void> send_slow(const Indices& requests);
  Result<void> send_apart(const Indices& requests);
  [[nodiscard]] Result<void> leave_to_the_long_way(const Error& error) const;
  [[nodiscard]] bool rolled_back(const Error& error) const;
  [[nodiscard]] Indices unsettled() const;
  void give_up_on(std::size_t index, const Error& error);
  void settle_by_key(const Rows& rows, const Indices& requests);
  Result<Rows> run(const Statement& statement, const Params& params);
  [[nodiscard]] Batch pick(const Indices& indices) const;

  std::span<const Request> batch_;
  At at_;
  const Settings& settings_;
  Contended& contended_;
  Connection* connection_ = nullptr;
  Deadline deadline_{};
  std::vector<Reply> replies_;
  std::vector<bool> settled_;
  Indices quick_;
  Indices slow_;
  bool renewals_only_ = false;
  bool answered_ = false;  // an earlier statement of this batch has taken effect
};

}  // namespace baton::store::postgres
