#pragma once

#include <functional>
#include <memory>

#include "baton/memory_store.h"
#include "core/lock_table.h"

namespace baton::store {

// For tests: the same store on a clock that the test moves.
std::unique_ptr<LockStore> make_memory_store_at(std::function<core::StoreTime()> now);

}  // namespace baton::store
