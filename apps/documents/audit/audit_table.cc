#include "apps/documents/audit/audit_table.h"

namespace baton::documents::audit {
namespace {

constexpr std::int64_t kPage = 500;
constexpr std::size_t kMostLines = 20;

sql::Value or_null(const std::string& text) {
  return text.empty() ? sql::Value() : sql::Value(text);
}

// What is wrong with one seal and its row; empty: nothing.
std::string check(const Seal& previous, const sql::Row& row) {
  const std::int64_t sequence = row.integer(0);
  const std::string place = "seal " + std::to_string(sequence);
  if (sequence != previous.sequence + 1) {
    return "seals " + std::to_string(previous.sequence + 1) + " to " +
           std::to_string(sequence - 1) + " are missing";
  }
  if (row.text(1) != previous.hash) return place + " does not continue the one before";
  if (row.null(3)) return place + " is for a row that was removed";
  if (seal(previous, row_at(row, 3)).hash != row.text(2)) {
    return place + " does not fit row " + row.text(3) + ": one of them was changed";
  }
  return {};
}

}  // namespace

bool record(const Tx& tx, const AuditRow& row) {
  static const sql::Statement insert(
      "INSERT INTO audit_log (event_id, event_type, routing_key, document_id,"
      " correlation_id, causation_id, payload, occurred_at, recorded_at)"
      " SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9"
      " WHERE NOT EXISTS (SELECT 1 FROM audit_log WHERE event_id = $1)");
  return tx.write(insert, {row.event_id, row.event_type, row.routing_key, row.document_id,
                           or_null(row.correlation_id), or_null(row.causation_id), row.payload,
                           row.occurred_at, row.recorded_at}) == 1;
}

Seal last_seal(const Tx& tx) {
  const auto rows =
      tx.query("SELECT sequence, hash FROM audit_seal ORDER BY sequence DESC LIMIT 1");
  if (rows.empty()) return {};
  return {.sequence = rows.front().integer(0), .hash = rows.front().text(1)};
}

std::string row_columns(const Tx& tx) {
  return "a.id, a.event_id, a.event_type, a.routing_key, a.document_id, a.correlation_id,"
         " a.causation_id, a.payload, " +
         tx.time("a.occurred_at") + ", " + tx.time("a.recorded_at");
}

AuditRow row_at(const sql::Row& row, std::size_t first) {
  return {.id = row.integer(first),
          .event_id = row.text(first + 1),
          .event_type = row.text(first + 2),
          .routing_key = row.text(first + 3),
          .document_id = row.text(first + 4),
          .correlation_id = row.text(first + 5),
          .causation_id = row.text(first + 6),
          .payload = row.text(first + 7),
          .occurred_at = row.text(first + 8),
          .recorded_at = row.text(first + 9)};
}

std::vector<AuditRow> unsealed(const Tx& tx, std::int64_t most) {
  std::vector<AuditRow> found;
  for (const auto& row : tx.query("SELECT " + row_columns(tx) +
                                      " FROM audit_unsealed u JOIN audit_log a ON a.id = u.audit_id"
                                      " ORDER BY u.audit_id LIMIT $1",
                                  {most})) {
    found.push_back(row_at(row));
  }
  return found;
}

std::string oldest_unsealed(const Tx& tx) {
  const auto rows = tx.query("SELECT " + tx.time("a.recorded_at") +
                             " FROM audit_unsealed u JOIN audit_log a ON a.id = u.audit_id"
                             " ORDER BY u.audit_id LIMIT 1");
  return rows.empty() ? "" : rows.front().text(0);
}

// Two statements, however many seals there are.
void add_seals(const Tx& tx, const Seal& head, const std::vector<NewSeal>& seals,
               const std::string& now) {
  if (seals.empty()) return;
  std::string rows;
  sql::Values values = {now};
  const std::string* previous = &head.hash;
  for (const auto& [audit_id, seal] : seals) {
    rows += rows.empty() ? "(" : ", (";
    for (sql::Value value : {sql::Value(seal.sequence), sql::Value(audit_id), sql::Value(*previous),
                             sql::Value(seal.hash)}) {
      values.push_back(std::move(value));
      rows += "$" + std::to_string(values.size()) + ", ";
    }
    rows += "$1)";
    previous = &seal.hash;
  }
  tx.write(
      "INSERT INTO audit_seal (sequence, audit_id, previous_hash, hash, sealed_at) VALUES " + rows,
      values);
  tx.write(
      "DELETE FROM audit_unsealed WHERE audit_id IN"
      " (SELECT audit_id FROM audit_seal WHERE sequence > $1)",
      {head.sequence});
}

ChainReport verify_chain(const Tx& tx, const std::optional<Seal>& known) {
  ChainReport report;
  const auto wrong = [&](std::string line) {
    if (!line.empty() && report.wrong.size() < kMostLines) report.wrong.push_back(std::move(line));
  };
  bool known_seen = !known || known->sequence == 0;
  for (;;) {
    const auto page = tx.query("SELECT s.sequence, s.previous_hash, s.hash, " + row_columns(tx) +
                                   " FROM audit_seal s LEFT JOIN audit_log a ON a.id = s.audit_id"
                                   " WHERE s.sequence > $1 ORDER BY s.sequence LIMIT $2",
                               {report.head.sequence, kPage});
    for (const auto& row : page) {
      wrong(check(report.head, row));
      report.head = {.sequence = row.integer(0), .hash = row.text(2)};
      known_seen = known_seen || (known && known->sequence == report.head.sequence &&
                                  known->hash == report.head.hash);
    }
    if (page.size() < static_cast<std::size_t>(kPage)) break;
  }
  if (!known_seen) {
    wrong("the known head " + std::to_string(known->sequence) + " is not in the chain");
  }
  report.rows = tx.query("SELECT count(*) FROM audit_log").front().integer(0);
  report.unsealed = tx.query(
                          "SELECT count(*) FROM audit_log a WHERE NOT EXISTS"
                          " (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.id)")
                        .front()
                        .integer(0);
  const auto forgotten = tx.query(
      "SELECT count(*) FROM audit_log a WHERE NOT EXISTS"
      " (SELECT 1 FROM audit_seal s WHERE s.audit_id = a.id) AND NOT EXISTS"
      " (SELECT 1 FROM audit_unsealed u WHERE u.audit_id = a.id)");
  if (forgotten.front().integer(0) != 0) {
    wrong(forgotten.front().text(0) + " rows are neither sealed nor waiting to be");
  }
  return report;
}

}  // namespace baton::documents::audit
