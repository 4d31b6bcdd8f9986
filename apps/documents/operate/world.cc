#include "apps/documents/operate/world.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/documents/common/work.h"
#include "apps/documents/services.h"
#include "core/sha256.h"
#include "event/message_headers.h"

namespace baton::documents {
namespace {

// The outbox keeps an event for three days at least; the clocks may differ by an hour.
constexpr std::chrono::hours kOutboxKeeps{3 * 24 - 1};

// Of a service that publishes nothing, or consumes nothing, the one or the other is missing.
bool has_table(const Tx& tx, const std::string& table) {
  return !tx.query(tx.on_postgres() ? "SELECT 1 WHERE to_regclass($1) IS NOT NULL"
                                    : "SELECT 1 FROM sqlite_master WHERE name = $1",
                   {table})
              .empty();
}

// The fields of a payload that the service which emits it has in columns of its own.
std::vector<const char*> fields_of(std::string_view type) {
  if (type == "DocumentUploaded" || type == "DocumentValidated") {
    return {"title", "contentType", "owner", "content", "contentUrl", "metadata"};
  }
  if (type == "DocumentRejected") return {"reasons"};
  if (type == "DocumentEnriched") {
    return {"classification", "language", "wordCount", "keywords", "checksum"};
  }
  return {};
}

std::string facts_of(std::string_view type, const nlohmann::json& payload) {
  nlohmann::json facts = nlohmann::json::array();
  for (const char* field : fields_of(type)) {
    const bool has = payload.is_object() && payload.contains(field);
    facts.push_back(has ? payload.at(field) : nlohmann::json());
  }
  return facts.empty() ? "" : core::sha256(dump(facts));
}

nlohmann::json text_or_null(const sql::Row& row, std::size_t column) {
  return row.null(column) ? nlohmann::json() : nlohmann::json(row.text(column));
}

// While the services work, what an event has led to is read before the event itself, and the
// documents last: what is read later can only know more, so that what has just happened looks
// unfinished, and never wrong.
class Reader {
 public:
  explicit Reader(const Places& places) : places_(places) {}

  void read(World& world) {
    read_notification(world);
    read_audit(world);
    for (const KnownService& service : all_services()) {
      if (has_table(Tx(session(service.name)), "inbox_events")) {
        read_inbox(world, std::string(service.name));
      }
    }
    read_enrichment(world);
    read_validation(world);
    const auto services = all_services();
    for (auto service = services.rbegin(); service != services.rend(); ++service) {
      if (has_table(Tx(session(service->name)), "outbox_events")) {
        read_outbox(world, std::string(service->name));
      }
    }
    read_ingestion(world);
  }

 private:
  sql::Rows rows(std::string_view service, const std::string& sql) {
    return Tx(session(service)).query(sql);
  }
  sql::Connection& session(std::string_view service) {
    auto& found = sessions_[std::string(service)];
    if (!found) found = need(places_.look_into(service));
    return *found;
  }

  void read_ingestion(World& world) {
    for (const auto& row : rows("ingestion",
                                "SELECT id, owner, status, details, title, content_type, content,"
                                " content_url, metadata FROM documents")) {
      const auto details = parse_json(row.text(3));
      world.documents[row.text(0)] = {
          .owner = row.text(1),
          .status = row.text(2),
          .stage = row.text(2) == "FAILED" ? details.value("stage", "") : ""};
      const nlohmann::json submitted = {{"title", row.text(4)},
                                        {"contentType", row.text(5)},
                                        {"owner", row.text(1)},
                                        {"content", text_or_null(row, 6)},
                                        {"contentUrl", text_or_null(row, 7)},
                                        {"metadata", parse_json(row.text(8))}};
      for (const char* type : {"DocumentUploaded", "DocumentValidated"}) {
        world.facts[{row.text(0), type}] = facts_of(type, submitted);
      }
    }
  }

  void read_validation(World& world) {
    for (const auto& row :
         rows("validation", "SELECT document_id, result, reasons FROM validations")) {
      world.verdicts[row.text(0)] = row.text(1);
      world.facts[{row.text(0), "DocumentRejected"}] =
          facts_of("DocumentRejected", {{"reasons", parse_json(row.text(2))}});
    }
  }

  void read_enrichment(World& world) {
    for (const auto& row : rows("enrichment",
                                "SELECT document_id, classification, language, word_count,"
                                " keywords, checksum FROM enrichments")) {
      world.enriched.insert(row.text(0));
      world.facts[{row.text(0), "DocumentEnriched"}] =
          facts_of("DocumentEnriched", {{"classification", row.text(1)},
                                        {"language", row.text(2)},
                                        {"wordCount", static_cast<std::size_t>(row.integer(3))},
                                        {"keywords", parse_json(row.text(4))},
                                        {"checksum", row.text(5)}});
    }
  }

  void read_audit(World& world) {
    const std::string remembered =
        event::print_time(std::chrono::time_point_cast<std::chrono::milliseconds>(
            std::chrono::system_clock::now() - kOutboxKeeps));
    const std::string occurred_at = Tx(session("audit")).time("occurred_at");
    for (const auto& row : rows("audit", "SELECT event_id, event_type, document_id, payload, " +
                                             occurred_at + " FROM audit_log")) {
      world.recorded.push_back({.event_id = row.text(0),
                                .type = row.text(1),
                                .document = row.text(2),
                                .digest = core::sha256(row.text(3)),
                                .occurred_at = row.text(4),
                                .old = row.text(4) < remembered});
    }
    world.chain = audit::verify_chain(Tx(session("audit")));
  }

  void read_notification(World& world) {
    for (const auto& row :
         rows("notification",
              "SELECT event_id, channel, user_id, document_id FROM notification_history")) {
      world.told.push_back({row.text(0), row.text(1), row.text(2), row.text(3)});
    }
    const std::string updated_at = Tx(session("notification")).time("updated_at");
    for (const auto& row : rows("notification", "SELECT user_id, channel, enabled, " + updated_at +
                                                    " FROM notification_preferences")) {
      world.preferences[{row.text(0), row.text(1)}] = {.on = row.integer(2) != 0,
                                                       .updated_at = row.text(3)};
    }
    read_spool(world);
  }

  // What is not there on this machine cannot be looked at.
  void read_spool(World& world) const {
    std::error_code problem;
    if (!std::filesystem::is_directory(places_.spool(), problem)) return;
    world.spooled.emplace();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(places_.spool())) {
      if (entry.path().extension() != ".json") continue;
      std::ifstream file(entry.path());
      std::ostringstream text;
      text << file.rdbuf();
      const auto notice = parse_json(text.str());
      world.spooled->push_back(notice.is_object() ? notice.value("idempotencyKey", "") : "");
    }
  }

  void read_outbox(World& world, const std::string& service) {
    for (const auto& row : rows(service,
                                "SELECT event_id, type, aggregate_id, status, causation_id, payload"
                                " FROM outbox_events")) {
      world.emitted.push_back({.service = service,
                               .event_id = row.text(0),
                               .type = row.text(1),
                               .document = row.text(2),
                               .status = row.text(3),
                               .cause = row.text(4),
                               .digest = core::sha256(row.text(5)),
                               .facts = facts_of(row.text(1), parse_json(row.text(5)))});
    }
  }

  // The ledger first: it knows of every row of the inbox.
  void read_inbox(World& world, const std::string& service) {
    for (const auto& row : rows(service, "SELECT event_id, outcome FROM processed_events")) {
      world.decided.push_back({service, row.text(0), row.text(1)});
    }
    for (const auto& row : rows(service,
                                "SELECT status, event_id, type, aggregate_id, last_error"
                                " FROM inbox_events ORDER BY arrival")) {
      world.troubles.push_back(
          {service, row.text(0), row.text(1), row.text(2), row.text(3), row.text(4)});
    }
  }

  const Places& places_;
  std::map<std::string, std::unique_ptr<sql::Connection>> sessions_;
};

}  // namespace

Result<World> read_world(const Places& places) {
  try {
    World world;
    Reader(places).read(world);
    return world;
  } catch (const SqlError& failed) {
    return failed.error;
  }
}

}  // namespace baton::documents
