#pragma once

// The tables of the tests of events that are not the library's: `aggregate` with the last number of
// each, `business` with what was committed, and `effect` with what consumers did.

#include <string>

#include "baton/outbox.h"
#include "sql/connection.h"
#include "sql/transaction.h"

namespace baton::test {

// Of a shop and of its sink; replaces those that are there.
void make_event_tables(sql::Connection& shop, sql::Connection& sink, int aggregates);

// The next event of an aggregate, and a row of `business` about it.
Result<void> add_event(sql::Transaction& transaction, const Outbox& outbox,
                       const std::string& aggregate, const std::string& type);

}  // namespace baton::test
