#pragma once

// Requests and answers of etcd as text: JSON with base64 keys and values, and numbers as strings.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/grant_id.h"
#include "store/etcd/gateway.h"

namespace baton::store::etcd::wire {

[[nodiscard]] std::string txn(const Txn& txn);
[[nodiscard]] std::string range(const std::string& key, const std::string& end, std::size_t limit);
[[nodiscard]] std::string lease_grant(std::chrono::seconds ttl);
[[nodiscard]] std::string lease(LeaseId id);
[[nodiscard]] std::string authenticate(const std::string& user, const std::string& password);
[[nodiscard]] std::string watch(const std::vector<std::string>& keys);

// Nothing if the text is not what etcd would say.
[[nodiscard]] std::optional<TxnAnswer> txn_answer(std::string_view text);
[[nodiscard]] std::optional<Gateway::RangeAnswer> range_answer(std::string_view text);
[[nodiscard]] std::optional<Gateway::LeaseAnswer> lease_answer(std::string_view text);
[[nodiscard]] std::optional<std::string> token_answer(std::string_view text);

struct WatchEvent {
  bool created = false;
  std::string ended;  // why the server gave the watch up
  std::vector<KeyValue> puts;
};
[[nodiscard]] std::optional<WatchEvent> watch_event(std::string_view line);

// What one process tells another one: for which of its grants something may have changed, and
// documents as the same transaction wrote them.
struct Message {
  std::vector<GrantId> grants;
  std::map<std::string, std::string> documents;  // by key
};
[[nodiscard]] std::string message(const Message& message);
[[nodiscard]] std::optional<Message> message(std::string_view text);

// A gRPC status and what etcd says about it.
struct Problem {
  int code = 0;
  std::string message;
};
[[nodiscard]] Problem problem(std::string_view text);

// The value of a field at the top, as text; empty if there is none.
[[nodiscard]] std::string field(std::string_view text, const char* name);
[[nodiscard]] std::size_t member_count(std::string_view text);

}  // namespace baton::store::etcd::wire
