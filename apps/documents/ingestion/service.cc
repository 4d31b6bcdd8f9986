#include "apps/documents/ingestion/service.h"

#include "apps/documents/common/problem.h"
#include "apps/documents/common/topology.h"
#include "apps/documents/ingestion/document_metrics.h"
#include "apps/documents/ingestion/document_store.h"
#include "apps/documents/ingestion/openapi.json.h"
#include "apps/documents/ingestion/postgres_tables.sql.h"
#include "apps/documents/ingestion/sqlite_tables.sql.h"
#include "apps/documents/ingestion/submit.h"
#include "baton/event.h"

namespace baton::documents::ingestion {
namespace {

namespace tables = embedded::apps_documents_ingestion;

// What an answer of GET /documents/{id} tells of an event.
nlohmann::json details_of(const nlohmann::json& payload) {
  nlohmann::json details = nlohmann::json::object();
  for (const char* name : {"reasons", "stage", "reason", "classification", "language", "wordCount",
                           "keywords", "checksum"}) {
    if (const auto found = payload.find(name); found != payload.end()) details[name] = *found;
  }
  return details;
}

Handled follow(Work& work) {
  const auto payload = work.payload();
  const auto status = proved_by(work.event().type, payload.value("stage", ""));
  if (!status) return business_error("an event that says nothing about a state");
  work.log_field("status", std::string(status->name));
  if (!raise_status(work.tx, work.document(), *status, details_of(payload))) {
    return business_error("there is no such document");
  }
  return done();
}

http::Response show(sql::Connection& database, const http::Request& request) {
  const std::string id(request.parameter("id"));
  auto document = is_event_id(id) ? find_document(Tx(database), id) : std::nullopt;
  if (!document) return problem(404, "there is no such document");
  return {.body = dump(*document) + "\n"};
}

}  // namespace

ServiceSpec make_service(const ServiceContext& context) {
  const auto log = context.log.named("documents.ingestion");
  const DocumentMetrics figures(context.metrics);
  return {.postgres_tables = tables::postgres_tables_sql,
          .sqlite_tables = tables::sqlite_tables_sql,
          .publishes = true,
          .queue = std::string(queue::status),
          .handle = follow,
          .add_routes =
              [&database = context.database, log](http::Router& router) {
                router.add("POST", "/documents",
                           with_database(
                               database,
                               [log](auto& session, const auto& request) {
                                 return submit(session, request, log);
                               },
                               log));
                router.add("GET", "/documents",
                           with_database(
                               database,
                               [](auto& session, const auto& request) {
                                 return list_documents(Tx(session), request);
                               },
                               log));
                router.add("GET", "/documents/{id}", with_database(database, show, log));
              },
          .api = embedded::apps_documents_ingestion::openapi_json,
          .housekeeping =
              [figures](const Tx& tx) {
                forget_old_answers(tx);
                figures.show(tx);
              }};
}

}  // namespace baton::documents::ingestion
