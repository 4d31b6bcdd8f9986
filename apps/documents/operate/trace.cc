#include "apps/documents/operate/trace.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/common/start.h"
#include "apps/documents/common/work.h"
#include "apps/documents/services.h"
#include "event/message_headers.h"

namespace baton::documents {
namespace {

struct Step {
  std::string at;  // RFC 3339
  std::string service;
  std::string what;
  std::string document;
  std::string about;
};

// What a service tells: time, what, document, about; $1 is the correlation id. TIME(x) is a time.
struct Source {
  const char* service;
  const char* sql;
};
constexpr Source kSources[] = {
    {"ingestion",
     "SELECT TIME(created_at), 'submitted', id, title FROM documents WHERE correlation_id = $1"},
    {"ingestion",
     "SELECT TIME(updated_at), 'is now ' || status, id, '' FROM documents"
     " WHERE correlation_id = $1 AND status_rank > 0"},
    {"validation",
     "SELECT TIME(validated_at), result, document_id, reasons FROM validations"
     " WHERE correlation_id = $1"},
    {"enrichment",
     "SELECT TIME(enriched_at), 'enriched', document_id, classification || ', ' || language"
     " FROM enrichments WHERE correlation_id = $1"},
    {"audit",
     "SELECT TIME(recorded_at), 'recorded ' || event_type, document_id, CASE WHEN EXISTS"
     " (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.id) THEN 'sealed' ELSE 'not sealed' END"
     " FROM audit_log a WHERE correlation_id = $1"},
    {"notification",
     "SELECT TIME(sent_at), 'told ' || user_id || ' by ' || channel, document_id, subject"
     " FROM notification_history WHERE correlation_id = $1"},
};

std::string with_times(const Tx& tx, std::string sql) {
  const auto at = sql.find("TIME(");
  const auto end = sql.find(')', at);
  return sql.replace(at, end + 1 - at, tx.time(sql.substr(at + 5, end - at - 5)));
}

void add_troubles(const Tx& tx, const std::string& service, const std::string& correlation_id,
                  std::vector<Step>& steps) {
  const std::string at =
      tx.on_postgres() ? tx.time("last_failed_at")
                       : "strftime('%Y-%m-%dT%H:%M:%fZ', last_failed_at / 1000.0, 'unixepoch')";
  for (const auto& row : tx.query("SELECT " + at +
                                      ", status, type, aggregate_id, last_error FROM inbox_events"
                                      " WHERE correlation_id = $1",
                                  {correlation_id})) {
    steps.push_back(
        {row.text(0), service, row.text(1) + " " + row.text(2), row.text(3), row.text(4)});
  }
}

Result<std::vector<Step>> steps_of(const Places& places, const std::string& correlation_id) {
  std::vector<Step> steps;
  try {
    for (const KnownService& known : all_services()) {
      const std::string service(known.name);
      const auto session = need(places.look_into(service));
      const Tx tx(*session);
      for (const Source& source : kSources) {
        if (source.service != service) continue;
        for (const auto& row : tx.query(with_times(tx, source.sql), {correlation_id})) {
          steps.push_back({row.text(0), service, row.text(1), row.text(2), row.text(3)});
        }
      }
      add_troubles(tx, service, correlation_id, steps);
    }
  } catch (const SqlError& failed) {
    return failed.error;
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.at < b.at; });
  return steps;
}

void print_json(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    std::printf("%s\n", dump({{"at", step.at},
                              {"service", step.service},
                              {"what", step.what},
                              {"documentId", step.document},
                              {"about", step.about}})
                            .c_str());
  }
}

// The reasons of a rejection are stored as a JSON list.
std::string for_people(const std::string& about) {
  if (!about.starts_with('[')) return about;
  const auto reasons = parse_json(about);
  std::string text;
  if (!reasons.is_array()) return about;
  for (const auto& reason : reasons) {
    if (!reason.is_object()) continue;
    text += (text.empty() ? "" : "; ") + reason.value("message", "");
  }
  return text;
}

double seconds_between(const std::string& from, const std::string& to) {
  const auto begin = event::parse_time(from);
  const auto end = event::parse_time(to);
  return begin && end ? std::chrono::duration<double>(*end - *begin).count() : 0;
}

// Documents one behind the other, each from its first step.
void print(const std::vector<Step>& steps) {
  std::vector<std::string> documents;
  for (const Step& step : steps) {
    if (std::find(documents.begin(), documents.end(), step.document) == documents.end()) {
      documents.push_back(step.document);
    }
  }
  for (const std::string& document : documents) {
    std::string begin;
    for (const Step& step : steps) {
      if (step.document != document) continue;
      if (begin.empty()) {
        begin = step.at;
        std::printf("document %s, %s\n", document.c_str(), begin.c_str());
      }
      std::string line = step.what;
      if (const std::string about = for_people(step.about); !about.empty()) line += ": " + about;
      std::printf("%9.3f s  %-12s  %s\n", seconds_between(begin, step.at), step.service.c_str(),
                  line.c_str());
    }
  }
}

}  // namespace

Result<int> trace(const Places& places, const std::string& correlation_id, bool json) {
  const auto steps = steps_of(places, correlation_id);
  if (!steps) return steps.error();
  json ? print_json(*steps) : print(*steps);
  if (!steps->empty()) return apps::kOk;
  std::fprintf(stderr,
               "nothing has the correlation id %s; it is the correlationId of the answer to POST "
               "/documents\n",
               correlation_id.c_str());
  return apps::kError;
}

}  // namespace baton::documents
