#pragma once

// What an observed row is to other services: an event of the exchange `warehouse` with the routing
// key {type}.observed.

#include <string>

#include "apps/warehouse/observer_store.h"
#include "baton/broker.h"
#include "baton/event.h"

namespace baton::warehouse {

inline constexpr const char* kExchange = "warehouse";
inline constexpr const char* kCountQueue = "warehouse-count";

// The same from every node and every time, so that consumers handle a row once even if what we know
// of it was lost, as in a database that was restored from a backup.
[[nodiscard]] std::string event_id_of(const ObserverType& type, const std::string& source_id);

// The source's id, or the id of the event if that is none that an event can carry.
[[nodiscard]] std::string aggregate_of(const ObserverType& type, const std::string& source_id);

[[nodiscard]] Event event_of(const Poll& poll, const Observer& observer, const SourceRow& row);

// The exchange, and the queue of `warehouse count`.
[[nodiscard]] Topology topology();

}  // namespace baton::warehouse
