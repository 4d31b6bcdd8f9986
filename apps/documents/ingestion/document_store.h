#pragma once

// The tables of ingestion: documents, and the keys that make POST repeatable.

#include <optional>
#include <string>

#include "apps/documents/common/tx.h"
#include "apps/documents/ingestion/status.h"
#include "apps/documents/ingestion/submission.h"
#include "http/message.h"
#include "json/json.h"

namespace baton::documents::ingestion {

// Inside a transaction.
void insert_document(const Tx& tx, const std::string& id, const Submission& submission,
                     const std::string& correlation_id, const std::string& now);

// False if there is no such document. A state that is not above that of the document changes
// nothing. `details` tells people why or with what result.
bool raise_status(const Tx& tx, const std::string& id, const Status& status,
                  const nlohmann::json& details);

[[nodiscard]] std::optional<nlohmann::json> find_document(const Tx& tx, const std::string& id);
[[nodiscard]] http::Response list_documents(const Tx& tx, const http::Request& request);

struct StoredAnswer {
  std::string request_hash;
  std::string document_id;
  std::string response;
};

// Whether this transaction alone may work for the key until it ends. Does not wait: on SQLite a
// transaction is alone anyway.
[[nodiscard]] bool try_lock_key(const Tx& tx, const std::string& key);
[[nodiscard]] std::optional<StoredAnswer> find_answer(const Tx& tx, const std::string& key);
void store_answer(const Tx& tx, const std::string& key, const StoredAnswer& answer,
                  const std::string& now);
void forget_old_answers(const Tx& tx);

}  // namespace baton::documents::ingestion
