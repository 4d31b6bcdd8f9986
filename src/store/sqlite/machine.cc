#include "store/sqlite/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace baton::store::sqlite {
namespace {

// How long a tombstone was meant to last is not kept. An acquire cannot arrive later than
// Capabilities::apply_limit after it was sent; this is well above it.
constexpr core::StoreTime kTombstonePeriod = std::chrono::minutes(1);

// Empty on kernels that have no time namespaces.
std::string own_time_namespace() {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink("/proc/self/ns/time", text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

Result<Machine> this_machine() {
  Machine machine;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, machine.boot_id) || machine.boot_id.empty()) {
    return Error{.code = Code::bad_store,
                 .message =
                     "/proc/sys/kernel/random/boot_id cannot be read: mount /proc, an SQLite "
                     "store needs it to tell one boot from another"};
  }
  machine.time_namespace = own_time_namespace();
  machine.now = [] {
    return std::chrono::floor<core::StoreTime>(BootClock::now().time_since_epoch());
  };
  return machine;
}

void start_periods_again(core::NameState& state, core::StoreTime now) {
  for (core::Holder& holder : state.holders) {
    const bool parked = holder.state == core::HolderState::parked;
    holder.since = now;
    holder.expires =
        now + (parked ? holder.at_least_for : std::max(holder.ttl, holder.at_least_for));
  }
  for (core::Waiter& waiter : state.waiters) {
    waiter.stale = now + std::max(waiter.ttl, waiter.claim_within);
  }
  for (core::Tombstone& tombstone : state.tombstones) tombstone.until = now + kTombstonePeriod;
}

}  // namespace baton::store::sqlite
