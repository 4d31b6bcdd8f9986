#pragma once

#include <memory>

#include "baton/store.h"

namespace baton {

// Locks between the threads of one process, gone when it ends: for tests and single replicas.
[[nodiscard]] BATON_EXPORT std::unique_ptr<LockStore> make_memory_store();

}  // namespace baton
