#pragma once

#include <span>
#include <vector>

#include "baton/store.h"
#include "store/postgres/codec.h"
#include "store/postgres/guesses.h"
#include "store/postgres/pool.h"

namespace baton::store::postgres {

// One batch on its way: which requests take the short way, in how many statements, and what to do
// with those that a statement leaves unsettled or fails for.
class BatchRun {
 public:
  // Answers at once what breaks a rule.
  BatchRun(std::span<const Request> batch, At at, const Settings& settings, Guesses& guesses);

  [[nodiscard]] bool nothing_to_send() const {
    return quick_.empty() && noted_.empty() && slow_.empty();
  }
  // A renewal with a note waits for its row, and would hold those up that do not.
  [[nodiscard]] Lane lane() const { return plain_renewals_only_ ? Lane::renewals : Lane::requests; }
  [[nodiscard]] std::vector<Reply> replies() { return std::move(replies_); }
  // When whatever is sent has taken effect, or never will.
  [[nodiscard]] Deadline limit() const { return entered_ + settings_.apply_limit; }

  Result<std::vector<Reply>> send(Connection& connection, Deadline deadline);

 private:
  using Indices = std::vector<std::size_t>;

  void sort_out();
  Result<void> send_one(std::size_t index);
  Result<void> send_free(std::size_t index);
  Result<void> send_quick();
  Result<void> send_known(Indices& acquires);
  Result<void> send_new(const Indices& acquires);
  Result<void> send_plain(const Statement& statement, const Params& params);
  [[nodiscard]] bool may_have_row(std::size_t index) const;
  [[nodiscard]] bool are_mostly_known(const Indices& acquires) const;
  [[nodiscard]] bool are_all_alike(const Indices& acquires) const;
  Result<void> send_noted();
  Result<void> send_renewals(const Indices& renewals);
  Result<void> send_slow(const Indices& requests);
  Result<void> send_apart(const Indices& requests);
  [[nodiscard]] Result<void> leave_to_the_long_way(const Error& error) const;
  [[nodiscard]] bool rolled_back(const Error& error) const;
  [[nodiscard]] bool too_late_to_send() const;
  [[nodiscard]] Indices unsettled() const;
  void give_up_on(std::size_t index, const Error& error);
  void settle_by_key(const Rows& rows, const Indices& requests);
  [[nodiscard]] std::size_t index_of(std::string_view key, const Indices& sorted) const;
  Result<Rows> run(const Statement& statement, const Params& params);
  [[nodiscard]] Batch pick(const Indices& indices) const;

  const Instant entered_;
  std::span<const Request> batch_;
  At at_;
  const Settings& settings_;
  Guesses& guesses_;
  Connection* connection_ = nullptr;
  Deadline deadline_{};
  std::vector<Reply> replies_;
  std::vector<bool> settled_;
  Indices quick_;
  Indices noted_;
  Indices slow_;
  bool plain_renewals_only_ = false;
  bool answered_ = false;  // an earlier statement of this batch has taken effect
};

}  // namespace baton::store::postgres
