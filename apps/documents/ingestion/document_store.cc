#include "apps/documents/ingestion/document_store.h"

#include <chrono>

#include "apps/documents/common/page.h"
#include "apps/documents/common/work.h"
#include "event/message_headers.h"

namespace baton::documents::ingestion {
namespace {

constexpr std::chrono::hours kKeysAreKept{24};

// The time before which a key has been forgotten.
std::string keys_begin() {
  return event::print_time(std::chrono::time_point_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now() - kKeysAreKept));
}

std::string columns(const Tx& tx) {
  return "id, title, content_type, content_url, owner, status, details, correlation_id, " +
         tx.time("created_at") + ", " + tx.time("updated_at") + ", metadata";
}

nlohmann::json show(const sql::Row& row) {
  nlohmann::json document = {{"id", row.text(0)},
                             {"title", row.text(1)},
                             {"contentType", row.text(2)},
                             {"owner", row.text(4)},
                             {"status", row.text(5)},
                             {"details", parse_json(row.text(6))},
                             {"correlationId", row.text(7)},
                             {"createdAt", row.text(8)},
                             {"updatedAt", row.text(9)},
                             {"metadata", parse_json(row.text(10))}};
  if (!row.null(3)) document["contentUrl"] = row.text(3);
  return document;
}

sql::Value text_or_null(const std::string& text, bool null) {
  return null ? sql::Value() : sql::Value(text);
}

}  // namespace

void insert_document(const Tx& tx, const std::string& id, const Submission& submission,
                     const std::string& correlation_id, const std::string& now) {
  static const sql::Statement insert(
      "INSERT INTO documents (id, title, content_type, content, content_url, metadata, owner,"
      " correlation_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)");
  const bool by_url = !submission.content_url.empty();
  tx.write(insert,
           {id, submission.title, submission.content_type, text_or_null(submission.content, by_url),
            text_or_null(submission.content_url, !by_url), dump(submission.metadata),
            submission.owner, correlation_id, now});
}

bool raise_status(const Tx& tx, const std::string& id, const Status& status,
                  const nlohmann::json& details) {
  static const sql::Statement raise(
      "UPDATE documents SET status = $2, status_rank = $3, details = $4, updated_at = $5"
      " WHERE id = $1 AND status_rank < $3");
  const auto raised = tx.write(
      raise, {id, std::string(status.name), std::int64_t{status.rank}, dump(details), now_text()});
  return raised > 0 || !tx.query("SELECT 1 FROM documents WHERE id = $1", {id}).empty();
}

std::optional<nlohmann::json> find_document(const Tx& tx, const std::string& id) {
  const auto rows = tx.query("SELECT " + columns(tx) + " FROM documents WHERE id = $1", {id});
  if (rows.empty()) return std::nullopt;
  return show(rows.front());
}

http::Response list_documents(const Tx& tx, const http::Request& request) {
  return answer_list(tx,
                     {.columns = columns(tx),
                      .table = "documents",
                      .key = "id",
                      .key_is_uuid = true,
                      .newest_first = true,
                      .filters = {{"status",
                                   "status = ",
                                   Listing::Filter::Kind::text,
                                   {kStatusNames.begin(), kStatusNames.end()}},
                                  {"owner", "owner = "},
                                  {"correlationId", "correlation_id = "}},
                      .show = show},
                     request);
}

bool try_lock_key(const Tx& tx, const std::string& key) {
  if (!tx.on_postgres()) return true;
  const auto locked = tx.query(
      "SELECT pg_try_advisory_xact_lock(hashtextextended('documents idempotency ' || $1, 0))::int",
      {key});
  return locked.front().integer(0) != 0;
}

std::optional<StoredAnswer> find_answer(const Tx& tx, const std::string& key) {
  tx.write("DELETE FROM idempotency_keys WHERE key = $1 AND created_at < $2", {key, keys_begin()});
  const auto rows = tx.query(
      "SELECT request_hash, document_id, response FROM idempotency_keys WHERE key = $1", {key});
  if (rows.empty()) return std::nullopt;
  const sql::Row& row = rows.front();
  return StoredAnswer{
      .request_hash = row.text(0), .document_id = row.text(1), .response = row.text(2)};
}

void store_answer(const Tx& tx, const std::string& key, const StoredAnswer& answer,
                  const std::string& now) {
  tx.write(
      "INSERT INTO idempotency_keys (key, request_hash, document_id, response, created_at)"
      " VALUES ($1, $2, $3, $4, $5)",
      {key, answer.request_hash, answer.document_id, answer.response, now});
}

void forget_old_answers(const Tx& tx) {
  tx.write(
      "DELETE FROM idempotency_keys WHERE key IN"
      " (SELECT key FROM idempotency_keys WHERE created_at < $1 LIMIT 1000)",
      {keys_begin()});
}

}  // namespace baton::documents::ingestion
