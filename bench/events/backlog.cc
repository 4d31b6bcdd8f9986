#include "events/backlog.h"

#include "locks/session.h"

namespace baton::bench {

void add_backlog(const std::string& database, const std::string& exchange, std::int64_t events) {
  Session session(database);
  // A UUID of version 7 begins with the time.
  session.ask(
      "INSERT INTO outbox_events (lane, slot, event_id, type, aggregate_type, aggregate_id,"
      " exchange, routing_key, payload, headers, version)"
      " SELECT hashtextextended(aggregate COLLATE \"C\", 0) & 15,"
      " floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint & 7,"
      " overlay(overlay(gen_random_uuid()::text placing lpad(to_hex(i >> 16), 8, '0') from 1)"
      "         placing lpad(to_hex(i & 65535), 4, '0') || '-7' from 10)::uuid,"
      " 'OrderPlaced', 'order', aggregate, '" +
      exchange +
      "', 'order.placed', '\"' || repeat('x', 510) || '\"', '{}', 1"
      " FROM (SELECT i, 'order-' || i % 10000 AS aggregate FROM generate_series(1, " +
      std::to_string(events) + ") i) e");
}

}  // namespace baton::bench
