#include "documents_check.h"

#include <map>
#include <set>
#include <utility>

#include "apps/documents/common/tx.h"

namespace demo {
namespace {

using baton::documents::need;
using baton::documents::Places;
using baton::documents::Tx;

std::string status_of(Kind kind) {
  switch (kind) {
    case Kind::good:
    case Kind::flaky: return "ENRICHED";
    case Kind::invalid: return "REJECTED";
    case Kind::poison_for_validation:
    case Kind::poison_for_enrichment: return "FAILED";
  }
  return "";
}

// The events of a document, by their types.
std::vector<std::string> events_of(Kind kind) {
  switch (kind) {
    case Kind::good:
    case Kind::flaky: return {"DocumentUploaded", "DocumentValidated", "DocumentEnriched"};
    case Kind::invalid: return {"DocumentUploaded", "DocumentRejected"};
    case Kind::poison_for_validation: return {"DocumentUploaded", "DocumentFailed"};
    case Kind::poison_for_enrichment:
      return {"DocumentUploaded", "DocumentValidated", "DocumentFailed"};
  }
  return {};
}

std::set<std::string> channels_of(const std::string& event) {
  if (event == "DocumentValidated") return {"push"};
  if (event == "DocumentRejected") return {"email", "push"};
  if (event == "DocumentEnriched") return {"email"};
  if (event == "DocumentFailed") return {"email", "sms"};
  return {};
}

using Row = std::vector<std::string>;
using Rows = std::multiset<Row>;

Rows rows(const Places& places, const std::string& service, const std::string& sql,
          std::size_t columns) {
  const auto session = need(places.look_into(service));
  Rows found;
  for (const auto& row : Tx(*session).query(sql)) {
    Row values;
    for (std::size_t i = 0; i < columns; ++i) values.push_back(row.text(i));
    found.insert(std::move(values));
  }
  return found;
}

std::string number(const Rows& rows) { return std::to_string(rows.size()); }

}  // namespace

std::vector<Finding> check_documents(const Places& places,
                                     const std::vector<Submitted>& submitted) {
  Rows states;
  Rows dead;
  Rows events;
  Rows messages;
  std::map<std::string, int> count;
  for (const Submitted& one : submitted) {
    states.insert({one.id, status_of(one.kind)});
    ++count[status_of(one.kind)];
    if (one.kind == Kind::poison_for_validation) dead.insert({"validation", one.id});
    if (one.kind == Kind::poison_for_enrichment) dead.insert({"enrichment", one.id});
    for (const std::string& event : events_of(one.kind)) {
      events.insert({one.id, event});
      for (const std::string& channel : channels_of(event)) {
        messages.insert({one.id, event, channel});
      }
    }
  }
  Rows letters;
  for (const char* service : {"ingestion", "validation", "enrichment", "audit", "notification"}) {
    const auto found = rows(places, service,
                            "SELECT '" + std::string(service) +
                                "', aggregate_id FROM inbox_events WHERE status = 'DEAD'",
                            2);
    letters.insert(found.begin(), found.end());
  }
  const auto sealed = rows(places, "audit",
                           "SELECT document_id, event_type FROM audit_log JOIN audit_seal"
                           " ON audit_id = audit_log.id",
                           2);
  return {
      {rows(places, "ingestion", "SELECT id, status FROM documents", 2) == states,
       number(states) + " documents in the right state: " + std::to_string(count["ENRICHED"]) +
           " ENRICHED, " + std::to_string(count["REJECTED"]) + " REJECTED, " +
           std::to_string(count["FAILED"]) + " FAILED"},
      {letters == dead, "the dead letters are exactly the " + number(dead) + " poison documents"},
      {rows(places, "audit", "SELECT document_id, event_type FROM audit_log", 2) == events &&
           sealed == events,
       "the audit log has each of the " + number(events) + " events once, sealed"},
      {rows(places, "notification",
            "SELECT document_id, event_type, channel FROM notification_history", 3) == messages,
       "each of the " + number(messages) + " notifications was sent once"},
  };
}

}  // namespace demo
