#pragma once

#include <cstdint>
#include <string>

namespace baton::bench {

// Events of 512 bytes in an outbox, of 10,000 aggregates, in one transaction and by the server
// alone, with the columns that outbox_add would have written.
void add_backlog(const std::string& database, const std::string& exchange, std::int64_t events);

}  // namespace baton::bench
