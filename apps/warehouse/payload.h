#pragma once

#include <string>

#include "apps/warehouse/observer_type.h"
#include "sql/value.h"

namespace baton::warehouse {

// The JSON of an event: id, channel and the columns of the type. `row` has the position, the id
// and then the columns.
[[nodiscard]] std::string payload_of(const ObserverType& type, const std::string& channel,
                                     const sql::Row& row);

}  // namespace baton::warehouse
