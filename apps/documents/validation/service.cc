#include "apps/documents/validation/service.h"

#include "apps/documents/common/topology.h"
#include "apps/documents/validation/postgres_tables.sql.h"
#include "apps/documents/validation/rules.h"
#include "apps/documents/validation/sqlite_tables.sql.h"

namespace baton::documents::validation {
namespace {

namespace tables = embedded::apps_documents_validation;

void save(const Work& work, const char* result, const nlohmann::json& reasons) {
  static const sql::Statement insert(
      "INSERT INTO validations (document_id, event_id, result, reasons, correlation_id,"
      " validated_at) VALUES ($1, $2, $3, $4, $5, $6)");
  work.tx.write(insert, {work.document(), work.event().id, std::string(result), dump(reasons),
                         work.event().correlation_id, now_text()});
  work.log_field("validationResult", result);
}

Handled validate(Work& work) {
  nlohmann::json document = work.payload();
  work.simulate(document, "validation");
  nlohmann::json reasons = nlohmann::json::array();
  std::string codes;
  for (const BrokenRule& rule : broken_rules(document)) {
    reasons.push_back({{"code", rule.code}, {"message", rule.message}});
    codes += (codes.empty() ? "" : ", ") + rule.code;
  }
  if (codes.empty()) {
    save(work, "VALIDATED", reasons);
    (void)work.publish(type::validated, document);
    return done();
  }
  save(work, "REJECTED", reasons);
  (void)work.publish(type::rejected, {{"documentId", work.document()},
                                      {"title", document.value("title", "")},
                                      {"owner", document.value("owner", "")},
                                      {"reasons", reasons}});
  return business_error(codes);
}

}  // namespace

ServiceSpec make_service(const ServiceContext& /*context*/) {
  return {.postgres_tables = tables::postgres_tables_sql,
          .sqlite_tables = tables::sqlite_tables_sql,
          .publishes = true,
          .queue = std::string(queue::uploaded),
          .handle = validate,
          .give_up = [](Work& work) { publish_failed(work, "validation"); }};
}

}  // namespace baton::documents::validation
