#pragma once

#include <string>
#include <vector>

#include "harness/slices.h"

namespace baton::bench {

// The least that a lock in a PostgreSQL table costs: two prepared statements a pair, each its own
// transaction; the acquire waits for the disk, the release does not, as ours. One session a caller.
void create_postgres_floor(const std::string& url);
[[nodiscard]] std::vector<Step> postgres_floor(const std::string& url, int count, int names_each);

}  // namespace baton::bench
