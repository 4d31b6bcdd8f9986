#pragma once

// The effects of events: rows of a table of the subscriber's own database.

#include <string>

#include "baton/consumer.h"
#include "sql/connection.h"

namespace baton::warehouse {

// Makes the tables, the inbox of the consumer among them. Harmless to repeat, also by several at
// once.
[[nodiscard]] Result<void> install_effects(sql::Connection& database);

// The effect of an event, in the transaction of its consumer. `counted_by` is the replica.
[[nodiscard]] Handled add_effect(Handling& handling, const std::string& counted_by);

}  // namespace baton::warehouse
