#include "apps/documents/audit/service.h"

#include "apps/documents/audit/audit_table.h"
#include "apps/documents/audit/openapi.json.h"
#include "apps/documents/audit/postgres_tables.sql.h"
#include "apps/documents/audit/sealer.h"
#include "apps/documents/audit/sqlite_tables.sql.h"
#include "apps/documents/common/page.h"
#include "apps/documents/common/topology.h"

namespace baton::documents::audit {
namespace {

namespace tables = embedded::apps_documents_audit;
using Kind = Listing::Filter::Kind;

Handled record_event(Work& work) {
  const Event& event = work.event();
  const bool recorded = record(work.tx, {.event_id = event.id,
                                         .event_type = event.type,
                                         .routing_key = event.routing_key,
                                         .document_id = event.aggregate,
                                         .correlation_id = event.correlation_id,
                                         .causation_id = event.causation_id,
                                         .payload = event.payload,
                                         .occurred_at = work.occurred_at(),
                                         .recorded_at = now_text()});
  if (!recorded) return business_error("the event is in the log already");
  return done();
}

nlohmann::json show(const sql::Row& row) {
  const AuditRow found = row_at(row);
  nlohmann::json item = {{"id", found.id},
                         {"eventId", found.event_id},
                         {"eventType", found.event_type},
                         {"routingKey", found.routing_key},
                         {"documentId", found.document_id},
                         {"correlationId", found.correlation_id},
                         {"causationId", found.causation_id},
                         {"payload", parse_json(found.payload)},
                         {"occurredAt", found.occurred_at},
                         {"recordedAt", found.recorded_at}};
  if (item["payload"].is_discarded()) item["payload"] = nullptr;
  return item;
}

http::Response list(sql::Connection& database, const http::Request& request) {
  const Tx tx(database);
  return answer_list(tx,
                     {.columns = row_columns(tx),
                      .table = "audit_log a",
                      .key = "a.id",
                      .filters = {{"documentId", "a.document_id = "},
                                  {"correlationId", "a.correlation_id = "},
                                  {"eventType", "a.event_type = "},
                                  {"from", "a.occurred_at >= ", Kind::time},
                                  {"to", "a.occurred_at < ", Kind::time}},
                      .show = show},
                     request);
}

}  // namespace

ServiceSpec make_service(const ServiceContext& context) {
  return {.postgres_tables = tables::postgres_tables_sql,
          .sqlite_tables = tables::sqlite_tables_sql,
          .queue = std::string(queue::audit),
          .handle = record_event,
          .add_routes =
              [&database = context.database,
               log = context.log.named("documents.audit")](http::Router& router) {
                router.add("GET", "/audit", with_database(database, list, log));
              },
          .api = embedded::apps_documents_audit::openapi_json,
          .leader_work =
              [&database = context.database, log = context.log.named("documents.audit.sealer")](
                  Leadership& leadership, const std::stop_token& stop) {
                seal_while_leader(database, log, leadership, stop);
              },
          .housekeeping =
              [oldest = context.metrics.gauge(
                   "documents_audit_oldest_unsealed_age_seconds",
                   "Age of the oldest row of the audit log that is not in the hash chain.")](
                  const Tx& tx) { oldest.set(age_in_seconds(oldest_unsealed(tx))); }};
}

}  // namespace baton::documents::audit
