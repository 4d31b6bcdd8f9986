#pragma once

#include <span>
#include <vector>

#include "baton/store.h"
#include "store/postgres/codec.h"
#include "store/postgres/name_hints.h"
#include "store/postgres/pool.h"
#include "store/postgres/statements.h"

namespace baton::store::postgres {

// One batch on its way to the server.
//
// functions/apply.sql can answer every request. The common ones try a fast path first: a plain
// statement that answers a request if the row of its one name is enough to decide it, and otherwise
// leaves the row alone. Each is one round trip.
//
//   requests                         statement         answers                  falls back to
//   lone acquire, name was free      acquire           released                 busy, apply_one
//   lone acquire, name was busy      busy              held in X                acquire_new
//   other lone acquire               acquire_new       any free, or held in X   apply_one
//   acquires on the same terms,      acquire_many      released                 acquire_new_many
//     most names were free
//   other acquires                   acquire_new_many  any free, or held in X   apply
//   acquires with a note             acquire_noted     any free, or held in X,  apply(_one)
//                                                        if it has a row
//   claims                           claim             promoted                 apply(_one)
//   renewals                         renew             held, row not locked     apply(_one)
//   lone release                     release           nobody waits             apply_one
//   releases                         release_many      nobody waits             apply
//   releases with a note             release_noted     nobody waits             apply(_one)
//   gets                             get               nobody waits, one        apply(_one)
//                                                        holder at most
//   anything else                    apply_one, apply  everything
//
// "Held in X" is answered busy; a request that wants to queue falls back instead. What a name was
// is what this process remembers of it (NameHints). A lone request for a name that the fast path
// could not decide within the last second goes to apply_one at once. A request takes no fast path
// if another request of the batch has the same name, or if the batch changes the lock schema.
class BatchRun {
 public:
  // Answers at once the requests that break a rule.
  BatchRun(std::span<const Request> batch, TestClock now, const Settings& settings,
           NameHints& hints);

  [[nodiscard]] bool nothing_to_send() const { return unanswered().empty(); }
  // A renewal with a note waits for its row, which would hold up the other renewals.
  [[nodiscard]] Lane lane() const { return plain_renewals_only_ ? Lane::renewals : Lane::requests; }
  [[nodiscard]] std::vector<Reply> replies() { return std::move(replies_); }
  // From then on, nothing that was sent can take effect any more.
  [[nodiscard]] Deadline limit() const { return entered_ + settings_.apply_limit; }

  Result<std::vector<Reply>> send(Connection& connection, Deadline deadline);

 private:
  using Indices = std::vector<std::size_t>;

  void choose_fast_paths();
  Result<void> send_fast();
  Result<void> send_lone_acquire(const Request& request);
  [[nodiscard]] std::vector<StatementId> statements_for(const Request& lone_acquire) const;
  Result<void> send_lone_release(const Request& request);
  Result<void> send_plain(const Indices& requests);
  Result<void> send_acquires(Indices acquires);
  Result<void> send_noted(const Indices& requests);
  Result<void> send_many(StatementId id, const Indices& requests);
  Result<std::vector<Reply>> send_rest();
  Result<void> send_apply(const Indices& requests);
  Result<void> send_one_by_one(const Indices& requests);
  Result<Rows> run(StatementId id, const Batch& requests);

  [[nodiscard]] Indices of_verb(const Indices& requests, Verb verb) const;
  [[nodiscard]] bool may_be_free(std::size_t index) const;
  [[nodiscard]] bool mostly_free(const Indices& acquires) const;
  [[nodiscard]] bool on_same_terms(const Indices& acquires) const;
  [[nodiscard]] Result<void> fall_back(const Error& error) const;
  [[nodiscard]] bool rolled_back(const Error& error) const;
  [[nodiscard]] bool too_late_to_send() const;
  [[nodiscard]] Indices unanswered() const;
  void answer(std::size_t index, Reply reply);
  void answer_acquire(std::size_t index, Reply reply);
  void give_up_on(std::size_t index, const Error& error);
  [[nodiscard]] std::size_t index_of(std::string_view key, const Indices& sorted) const;
  [[nodiscard]] Batch pick(const Indices& indices) const;

  const Instant entered_;
  std::span<const Request> batch_;
  TestClock now_;
  const Settings& settings_;
  NameHints& hints_;
  Connection* connection_ = nullptr;
  Deadline deadline_{};
  std::vector<Reply> replies_;
  std::vector<bool> answered_;
  bool any_answered_ = false;  // by the server: a statement of this batch may have taken effect
  Indices plain_;              // take a fast path without a note, sorted by key
  Indices noted_;              // take a fast path with a note, sorted by key
  bool plain_renewals_only_ = false;
};

}  // namespace baton::store::postgres
