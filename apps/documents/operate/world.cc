#include "apps/documents/operate/world.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/documents/common/work.h"
#include "apps/documents/services.h"

namespace baton::documents {
namespace {

// Of a service that publishes nothing, or consumes nothing, the one or the other is missing.
bool has_table(const Tx& tx, const std::string& table) {
  return !tx.query(tx.on_postgres() ? "SELECT 1 WHERE to_regclass($1) IS NOT NULL"
                                    : "SELECT 1 FROM sqlite_master WHERE name = $1",
                   {table})
              .empty();
}

class Reader {
 public:
  explicit Reader(const Places& places) : places_(places) {}

  void read(World& world) {
    read_ingestion(world);
    read_stages(world);
    read_audit(world);
    read_notification(world);
    for (const KnownService& service : all_services()) {
      const std::string name(service.name);
      if (has_table(Tx(session(name)), "outbox_events")) read_outbox(world, name);
      if (has_table(Tx(session(name)), "inbox_events")) read_inbox(world, name);
    }
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
    for (const auto& row : rows("ingestion", "SELECT id, owner, status, details FROM documents")) {
      const auto details = parse_json(row.text(3));
      world.documents[row.text(0)] = {
          .owner = row.text(1),
          .status = row.text(2),
          .stage = row.text(2) == "FAILED" ? details.value("stage", "") : ""};
    }
  }

  void read_stages(World& world) {
    for (const auto& row : rows("validation", "SELECT document_id, result FROM validations")) {
      world.verdicts[row.text(0)] = row.text(1);
    }
    for (const auto& row : rows("enrichment", "SELECT document_id FROM enrichments")) {
      world.enriched.insert(row.text(0));
    }
  }

  void read_audit(World& world) {
    for (const auto& row :
         rows("audit", "SELECT event_id, event_type, document_id FROM audit_log")) {
      world.recorded.push_back({row.text(0), row.text(1), row.text(2)});
    }
    world.chain = audit::verify_chain(Tx(session("audit")));
  }

  void read_notification(World& world) {
    for (const auto& row :
         rows("notification", "SELECT event_id, channel, user_id FROM notification_history")) {
      world.told.push_back({row.text(0), row.text(1), row.text(2)});
    }
    for (const auto& row :
         rows("notification",
              "SELECT user_id, channel FROM notification_preferences WHERE enabled = 0")) {
      world.switched_off.insert({row.text(0), row.text(1)});
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
    for (const auto& row :
         rows(service, "SELECT event_id, type, aggregate_id, status FROM outbox_events")) {
      world.emitted.push_back({service, row.text(0), row.text(1), row.text(2), row.text(3)});
    }
  }

  void read_inbox(World& world, const std::string& service) {
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
