#pragma once

// Rows as replies. statements.h has the other direction, requests as parameters.

#include <utility>

#include "baton/store.h"
#include "store/postgres/statements.h"

namespace baton::store::postgres {

// A row of a statement that acquires: granted, or busy with the one holder that is in the way.
[[nodiscard]] Reply acquire_reply(const Rows& rows, int row);

// A row of `busy`.
[[nodiscard]] Reply busy_reply(const Rows& rows, int row);

// A row of a statement that claims or renews (granted) or releases (done).
[[nodiscard]] Reply grant_reply(const Rows& rows, int row);

// A row of `get`.
[[nodiscard]] Reply get_reply(const Rows& rows, int row);

// A row of apply or apply_one, and the index of the request that it answers.
[[nodiscard]] std::pair<std::size_t, Reply> apply_reply(const Rows& rows, int row,
                                                        const Batch& requests);

// A row of find or get.
[[nodiscard]] LockInfo lock_info(const Rows& rows, int row);

}  // namespace baton::store::postgres
