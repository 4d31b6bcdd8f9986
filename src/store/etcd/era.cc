#include "store/etcd/era.h"

#include <algorithm>
#include <mutex>

namespace baton::store::etcd {
namespace {

// How late a write is still expected.
constexpr Millis kLatest = std::chrono::hours(1);

}  // namespace

Compare Era::goes_on(Number number) const {
  return {.what = Compare::What::changed_at, .key = layout_.era(session_, number), .revision = 0};
}

void Era::doubt(Number number) {
  Number known = doubted_;
  while (known < number && !doubted_.compare_exchange_weak(known, number)) {
  }
}

Result<void> Era::settle(Deadline deadline) {
  if (doubted_ < number_) return {};
  std::unique_lock turn(ending_, std::defer_lock);
  if (!turn.try_lock_for(std::max<BootClock::duration>(deadline - BootClock::now(), {}))) {
    return Error{.code = Code::unavailable,
                 .message = "etcd: no answer in time after one that was missing",
                 .retryable = true};
  }
  if (doubted_ < number_) return {};  // somebody else was here
  auto lease = leases_.once(kLatest, deadline);
  if (!lease) return lease.error();
  Txn txn;
  txn.then = {
      {.what = Op::What::put, .key = layout_.era(session_, number_), .value = "", .lease = *lease}};
  if (auto ended = gateway_.txn(txn, deadline); !ended) {
    Error error = ended.error();
    error.in_doubt = false;  // nothing that was asked for
    return error;
  }
  ++number_;
  return {};
}

}  // namespace baton::store::etcd
