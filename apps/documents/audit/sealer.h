#pragma once

#include <stop_token>

#include "baton/elector.h"
#include "observe/log.h"
#include "sql/pool.h"

namespace baton::documents::audit {

// Puts new rows of the log into the chain, on one replica: recording needs no order, sealing makes
// one, so that replicas do not wait for each other. Every transaction is fenced, and a sequence and
// a row can be sealed once, so that a leader that was paused writes nothing.
void seal_while_leader(sql::Pool& database, const observe::Logger& log, Leadership& leadership,
                       const std::stop_token& stop);

}  // namespace baton::documents::audit
