#include "apps/documents/ingestion/submit.h"

#include <algorithm>

#include "apps/documents/common/topology.h"
#include "apps/documents/common/work.h"
#include "apps/documents/ingestion/document_store.h"
#include "baton/event.h"
#include "baton/outbox.h"
#include "core/sha256.h"
#include "sql/transaction.h"

namespace baton::documents::ingestion {
namespace {

constexpr std::size_t kMaxKey = 255;
constexpr std::string_view kKeyHeader = "idempotency-key";

// Empty: there is none, or one that can be used.
std::string wrong_key(const http::Request& request) {
  std::size_t keys = 0;
  for (const auto& [name, key] : request.headers) {
    if (name != kKeyHeader) continue;
    if (++keys > 1) return "is there more than once";
    const bool visible =
        std::all_of(key.begin(), key.end(), [](char c) { return c > 32 && c < 127; });
    if (key.empty() || key.size() > kMaxKey || !visible) {
      return "must have 1 to 255 visible ASCII characters";
    }
  }
  return {};
}

http::Response created(const std::string& id, const std::string& correlation_id,
                       const std::string& body) {
  return {.status = 201,
          .body = body,
          .headers = {{"Location", "/documents/" + id}, {"X-Correlation-Id", correlation_id}}};
}

struct Request {
  std::string key;  // empty: none
  std::string correlation_id;
  std::string traceparent;
  Submission submission;
};

// The answer to a request whose key was seen before; nothing if it was not.
std::optional<http::Response> answer_again(const Tx& tx, const Request& request,
                                           const std::string& hash) {
  if (!try_lock_key(tx, request.key)) {
    auto busy = problem(409, "a request with this Idempotency-Key is under way");
    busy.headers.emplace_back("Retry-After", "1");
    return busy;
  }
  const auto before = find_answer(tx, request.key);
  if (!before) return std::nullopt;
  if (before->request_hash != hash) {
    return problem(422, "this Idempotency-Key was used for another document");
  }
  const auto body = parse_json(before->response);
  return created(before->document_id, body.value("correlationId", ""), before->response);
}

void add_event(sql::Connection& database, const std::string& id, const Request& request,
               nlohmann::json payload) {
  static const Outbox outbox({.exchange = std::string(kExchange), .prepared = true});
  payload["documentId"] = id;
  const Event uploaded{.type = std::string(type::uploaded),
                       .aggregate = id,
                       .aggregate_type = "Document",
                       .payload = dump(payload),
                       .correlation_id = request.correlation_id,
                       .traceparent = request.traceparent};
  (void)need(database.postgres() != nullptr ? outbox.add(database.postgres(), uploaded)
                                            : outbox.add(database.sqlite(), uploaded));
}

http::Response store(sql::Connection& database, const Request& request,
                     const observe::Logger& log) {
  auto transaction = need(sql::Transaction::begin(database));
  const Tx tx(transaction);
  nlohmann::json payload = request.submission.payload();
  std::string hash;
  if (!request.key.empty()) {
    hash = core::sha256(dump(payload));
    if (auto again = answer_again(tx, request, hash)) {
      need(transaction.commit());
      if (again->status == 201) log.info("REQUEST_REPEATED");
      return *again;
    }
  }
  const std::string id = make_event_id();
  const std::string now = now_text();
  insert_document(tx, id, request.submission, request.correlation_id, now);
  add_event(database, id, request, std::move(payload));
  const std::string body = dump({{"id", id},
                                 {"status", kUploaded.name},
                                 {"correlationId", request.correlation_id},
                                 {"createdAt", now}}) +
                           "\n";
  if (!request.key.empty()) {
    store_answer(tx, request.key, {.request_hash = hash, .document_id = id, .response = body}, now);
  }
  need(transaction.commit());
  log.info("DOCUMENT_SUBMITTED", {{"documentId", id}});
  return created(id, request.correlation_id, body);
}

}  // namespace

http::Response submit(sql::Connection& database, const http::Request& asked,
                      const observe::Logger& log) {
  if (auto refused = refuse_other_than_json(asked)) return *refused;
  if (std::string wrong = wrong_key(asked); !wrong.empty()) {
    return problem(400, "a header cannot be used", {{"Idempotency-Key", wrong}});
  }
  auto parsed = parse_submission(asked.body);
  if (const auto* refused = std::get_if<Refused>(&parsed)) {
    return problem(refused->status, refused->detail, refused->errors);
  }
  return store(database,
               {.key = std::string(asked.header(kKeyHeader)),
                .correlation_id = std::string(asked.header("x-correlation-id")),
                .traceparent = usable_traceparent(asked.header("traceparent")),
                .submission = std::move(std::get<Submission>(parsed))},
               log);
}

}  // namespace baton::documents::ingestion
