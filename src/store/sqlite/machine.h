#pragma once

// The clock of the store. CLOCK_BOOTTIME is one clock for all processes of a machine, never steps
// and runs on through suspend; but it starts again at every boot, and a time namespace shifts it.
// So the file keeps the boot and the namespace that its times belong to.

#include <functional>
#include <string>

#include "core/lock_table.h"

namespace baton::store::sqlite {

struct Machine {
  std::function<core::StoreTime()> now;
  std::string boot_id;
  std::string time_namespace;
};

// This one, as the kernel describes it.
[[nodiscard]] Result<Machine> this_machine();

// Times of another boot say nothing here. Every grant is given a full period from now: no
// grant ends earlier than promised, and none outlives its TTL by more than the reboot.
void start_periods_again(core::NameState& state, core::StoreTime now);

}  // namespace baton::store::sqlite
