#pragma once

// The order in which deliveries are recorded, handled, committed and acknowledged: what happened is
// decided in one transaction, and only then acknowledged. A pure class, explored with decision.h.
//
//   insert ──▶ handle ──▶ commit ──▶ acknowledge ──▶ finished
//     │          │           ╲
//     │          ▼ failed     ╲ the database is away or does not know: insert again
//     │       record (several at once: each alone)
//     └ nothing new: commit

#include <cstdint>

#include "baton/export.h"

namespace baton::inbox {

class BATON_EXPORT DeliveryProgress {
 public:
  enum class Step : std::uint8_t {
    insert,       // begin, and put the ids of the deliveries into the ledger
    handle,       // those that are new
    commit,       // both
    record,       // in a new transaction: that the handler failed
    acknowledge,  // to the broker
    finished
  };

  [[nodiscard]] Step next() const { return step_; }
  void inserted(bool any_new) { step_ = any_new ? Step::handle : Step::commit; }
  void handled(bool well) { step_ = well ? Step::commit : Step::record; }
  void committed() { step_ = Step::acknowledge; }
  void recorded() { step_ = Step::acknowledge; }
  void acknowledged() { step_ = Step::finished; }
  // The transaction is gone, or nobody knows whether it was committed: the ledger will tell.
  void interrupted() { step_ = Step::insert; }

 private:
  Step step_ = Step::insert;
};

}  // namespace baton::inbox
