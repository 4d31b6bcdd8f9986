#pragma once

// Fences over sets and hierarchies, explored state by state with the production rule
// (src/core/fence.cc). Leases end without their holders knowing; every holder writes in
// transactions that take the rows of the fence one after the other, as PostgreSQL does.
//
//   nobody ── granted ──▶ holds ── take row ──▶ holds some rows ── take the last ──▶ may commit
//                           ▲ ▲                       │ overtaken: rolled back           │
//                           │ └───────────────────────┘                                  │
//                           └────────────────────────── commit ◀─────────────────────────┘

#include "explore/explorer.h"

namespace baton::explore {

// Promises: no holder that was overtaken, at a name or an ancestor, commits after its successor
// has; none is refused that was not overtaken; writers never wait for each other in a circle.
[[nodiscard]] Report explore_fences();

}  // namespace baton::explore
