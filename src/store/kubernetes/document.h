#pragma once

// A name's state as the text of an annotation. Clients have no clock in common, so the text says of
// everything that ends how long it lasts and which write set that; each client counts that time
// from when it first saw it, on its own clock.

#include <map>
#include <string>
#include <string_view>

#include "core/lock_table.h"
#include "store/kubernetes/server_time.h"

namespace baton::store::kubernetes {

// When one holder, waiter or tombstone ends.
struct Timing {
  std::uint64_t write = 0;  // the version that was replaced by the write that set this; 0: created
  ServerTime at{0};         // when that was; 0: not known
  std::chrono::microseconds lasts{0};  // from then
  ServerTime since{0};                 // of a holder
  core::StoreTime ends{0};             // by our own clock
  core::StoreTime held_since{0};       // by our own clock
};
using Timings = std::map<std::string, Timing>;

struct ClockReading {
  core::StoreTime here{0};
  ServerTime server{0};  // 0: not known
};

// A client that never saw a record before believes the server's clock about it only so far: the
// clocks of several API servers differ, and a Date is cut to the second.
inline constexpr std::chrono::seconds kDateGrace{10};

// `known` are the timings of the text that this one replaces; `timings` becomes those of this one.
[[nodiscard]] BATON_EXPORT std::string print_document(const core::NameState& state,
                                                      const Timings& known, std::uint64_t write,
                                                      const ClockReading& now, Timings& timings);

// Refuses anything that print_document does not write. `known` are the timings of the last text of
// the same object that this client saw.
[[nodiscard]] BATON_EXPORT Result<core::NameState> parse_document(std::string_view text,
                                                                  std::uint64_t version,
                                                                  const Timings& known,
                                                                  const ClockReading& now,
                                                                  Timings& timings);

}  // namespace baton::store::kubernetes
