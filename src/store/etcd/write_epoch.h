#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "store/common/timed_mutex.h"
#include "store/etcd/gateway.h"
#include "store/etcd/layout.h"
#include "store/etcd/leases.h"

namespace baton::store::etcd {

// Keeps a write that got no answer from being carried out later, when its process has long gone on:
// a name may be as it was then once more, for one that is not there always looks the same. Every
// write rests on the epoch of its process not being over. After one without an answer the epoch is
// ended by a key that says so, before the process writes anything else.
class WriteEpoch {
 public:
  WriteEpoch(Gateway& gateway, Leases& leases, const Layout& layout, const std::string& session)
      : gateway_(gateway), leases_(leases), layout_(layout), session_(session) {}

  using Number = std::uint64_t;
  [[nodiscard]] Number number() const { return number_; }
  [[nodiscard]] Compare not_ended(Number number) const;

  // A write in this epoch may still be carried out.
  void doubt(Number number);

  // Ends the epoch if it is in doubt.
  [[nodiscard]] Result<void> end_if_in_doubt(Deadline deadline);

 private:
  [[nodiscard]] Result<bool> is_over(Deadline deadline);
  [[nodiscard]] Result<void> end(Deadline deadline);

  Gateway& gateway_;
  Leases& leases_;
  const Layout& layout_;
  const std::string& session_;
  std::atomic<Number> number_ = 1;
  std::atomic<Number> doubted_ = 0;  // the latest
  TimedMutex ending_;
};

}  // namespace baton::store::etcd
