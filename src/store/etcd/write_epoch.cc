#include "store/etcd/write_epoch.h"

#include <algorithm>
#include <mutex>

namespace baton::store::etcd {
namespace {

// How late a write is still expected.
constexpr Millis kLatest = std::chrono::hours(1);

}  // namespace

Compare WriteEpoch::not_ended(Number number) const {
  return {.what = Compare::What::changed_at, .key = layout_.epoch(session_, number), .revision = 0};
}

void WriteEpoch::doubt(Number number) {
  Number known = doubted_;
  while (known < number && !doubted_.compare_exchange_weak(known, number)) {
  }
}

Result<void> WriteEpoch::end_if_in_doubt(Deadline deadline) {
  if (doubted_ < number_) return {};
  std::unique_lock turn(ending_, std::defer_lock);
  if (!turn.try_lock_for(std::max<BootClock::duration>(deadline - BootClock::now(), {}))) {
    return Error{.code = Code::unavailable,
                 .message = "etcd: no answer in time after one that was missing",
                 .retryable = true};
  }
  if (doubted_ < number_) return {};  // somebody else was here
  // An earlier try may have been carried out without a word.
  auto over = is_over(deadline);
  if (!over) return over.error();
  if (!*over) {
    if (auto ended = end(deadline); !ended) {
      // And etcd may complain of a used up quota when it has done what was asked for.
      over = is_over(deadline);
      if (!over || !*over) return ended;
    }
  }
  ++number_;
  return {};
}

Result<bool> WriteEpoch::is_over(Deadline deadline) {
  const auto answer = gateway_.range(layout_.epoch(session_, number_), "", 1, deadline);
  if (!answer) return answer.error();
  return !answer->found.empty();
}

Result<void> WriteEpoch::end(Deadline deadline) {
  auto lease = leases_.once(kLatest, deadline);
  if (!lease) return lease.error();
  Txn txn;
  txn.then = {{.what = Op::What::put,
               .key = layout_.epoch(session_, number_),
               .value = "",
               .lease = *lease}};
  const auto answer = gateway_.txn(txn, deadline);
  if (answer && answer->succeeded) return {};
  Error error{.code = Code::unavailable, .message = "etcd: a new lease is gone", .retryable = true};
  if (!answer) error = answer.error();
  error.in_doubt = false;  // nothing that was asked for
  return error;
}

}  // namespace baton::store::etcd
