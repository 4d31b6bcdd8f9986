#include "apps/documents/enrichment/service.h"

#include "apps/documents/common/topology.h"
#include "apps/documents/enrichment/enrich.h"
#include "apps/documents/enrichment/postgres_tables.sql.h"
#include "apps/documents/enrichment/sqlite_tables.sql.h"

namespace baton::documents::enrichment {
namespace {

namespace tables = embedded::apps_documents_enrichment;

void save(const Work& work, const Enrichment& found) {
  static const sql::Statement insert(
      "INSERT INTO enrichments (document_id, event_id, classification, language, word_count,"
      " keywords, checksum, correlation_id, enriched_at)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
  work.tx.write(insert, {work.document(), work.event().id, found.classification, found.language,
                         static_cast<std::int64_t>(found.word_count), dump(found.keywords),
                         found.checksum, work.event().correlation_id, now_text()});
}

Handled enrich_document(Work& work) {
  const auto document = work.payload();
  work.simulate(document, "enrichment");
  const Enrichment found = enrich(document);
  save(work, found);
  (void)work.publish(type::enriched, {{"documentId", work.document()},
                                      {"title", document.value("title", "")},
                                      {"owner", document.value("owner", "")},
                                      {"classification", found.classification},
                                      {"language", found.language},
                                      {"wordCount", found.word_count},
                                      {"keywords", found.keywords},
                                      {"checksum", found.checksum}});
  return done();
}

}  // namespace

ServiceSpec make_service(const ServiceContext& /*context*/) {
  return {.postgres_tables = tables::postgres_tables_sql,
          .sqlite_tables = tables::sqlite_tables_sql,
          .publishes = true,
          .queue = std::string(queue::validated),
          .handle = enrich_document,
          .give_up = [](Work& work) { publish_failed(work, "enrichment"); }};
}

}  // namespace baton::documents::enrichment
