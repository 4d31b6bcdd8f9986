#include "store/etcd/wire.h"

#include <charconv>
#include <stdexcept>

#include "http_client/base64.h"
#include "json/json.h"

namespace baton::store::etcd::wire {
namespace {

using http_client::to_base64;
using nlohmann::json;

[[noreturn]] void refuse() { throw std::runtime_error("not an answer of etcd"); }

// Zero is left out; everything else is a string, or in some versions a number.
std::int64_t number(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end()) return 0;
  if (it->is_number_integer()) return it->get<std::int64_t>();
  const auto& text = it->get_ref<const std::string&>();
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) refuse();
  return value;
}

std::string bytes(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  auto decoded = http_client::from_base64(it->get_ref<const std::string&>());
  if (!decoded) refuse();
  return std::move(*decoded);
}

bool flag(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->get<bool>();
}

KeyValue key_value(const json& object) {
  return {bytes(object, "key"), bytes(object, "value"), number(object, "create_revision"),
          number(object, "mod_revision"), number(object, "lease")};
}

std::vector<KeyValue> key_values(const json& range) {
  std::vector<KeyValue> found;
  const auto it = range.find("kvs");
  if (it == range.end()) return found;
  found.reserve(it->size());
  for (const json& item : *it) found.push_back(key_value(item));
  return found;
}

// Transactions are on the way of every lock, so their text is put together by hand. base64 and
// numbers need no escapes.
void add(std::string& out, const Compare& compare) {
  const bool changed = compare.what == Compare::What::changed_at;
  const bool exists = compare.what == Compare::What::exists;
  out += R"({"key":")" + to_base64(compare.key);
  // That they are to be equal goes without saying.
  out += changed  ? R"(","target":"MOD","mod_revision":")"
         : exists ? R"(","target":"CREATE","result":"GREATER","create_revision":")"
                  : R"(","target":"CREATE","create_revision":")";
  out += exists ? "0" : std::to_string(compare.revision);
  out += "\"}";
}

void add(std::string& out, const Op& op) {
  out += op.what == Op::What::put     ? R"({"request_put":{"key":")"
         : op.what == Op::What::erase ? R"({"request_delete_range":{"key":")"
                                      : R"({"request_range":{"key":")";
  out += to_base64(op.key);
  if (!op.end.empty()) out += R"(","range_end":")" + to_base64(op.end);
  if (op.what == Op::What::put) out += R"(","value":")" + to_base64(op.value);
  if (op.lease != 0) out += R"(","lease":")" + std::to_string(op.lease);
  out += "\"}}";
}

template <typename Item>
void add(std::string& out, const char* name, const std::vector<Item>& items) {
  out += name;
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    add(out, items[i]);
  }
  out += ']';
}

template <typename Answer, typename Read>
std::optional<Answer> parsed(std::string_view text, Read read) {
  try {
    return read(parse_json_or_throw(text));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The first line of the text, which loses it; nothing if there is no whole one.
std::optional<std::string_view> cut_line(std::string_view& text) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

// Streams wrap each message.
const json& unwrapped(const json& message) {
  const auto it = message.find("result");
  return it == message.end() ? message : *it;
}

}  // namespace

std::string txn(const Txn& txn) {
  std::string out;
  add(out, R"({"compare":)", txn.compares);
  add(out, R"(,"success":)", txn.then);
  if (!txn.otherwise.empty()) add(out, R"(,"failure":)", txn.otherwise);
  out += '}';
  return out;
}

std::string range(const std::string& key, const std::string& end, std::size_t limit) {
  return json{
      {"key", to_base64(key)}, {"range_end", to_base64(end)}, {"limit", std::to_string(limit)}}
      .dump();
}

std::string lease_grant(std::chrono::seconds ttl) {
  return json{{"TTL", std::to_string(ttl.count())}}.dump();
}

std::string lease(LeaseId id) { return json{{"ID", std::to_string(id)}}.dump(); }

std::string authenticate(const std::string& user, const std::string& password) {
  return json{{"name", user}, {"password", password}}.dump(-1, ' ', false,
                                                           json::error_handler_t::replace);
}

std::string watch(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    const json filters = json::array({"NODELETE"});
    text += json{{"create_request", {{"key", to_base64(key)}, {"filters", filters}}}}.dump() + "\n";
  }
  return text;
}

std::optional<TxnAnswer> txn_answer(std::string_view text) {
  return parsed<TxnAnswer>(text, [](const json& message) {
    TxnAnswer answer;
    answer.succeeded = flag(message, "succeeded");
    answer.revision = number(message.at("header"), "revision");
    if (const auto it = message.find("responses"); it != message.end()) {
      for (const json& response : *it) {
        const auto range = response.find("response_range");
        if (range != response.end()) answer.ranges.push_back(key_values(*range));
      }
    }
    return answer;
  });
}

std::optional<Gateway::RangeAnswer> range_answer(std::string_view text) {
  return parsed<Gateway::RangeAnswer>(text, [](const json& message) {
    if (!message.contains("header")) refuse();
    return Gateway::RangeAnswer{key_values(message), flag(message, "more")};
  });
}

std::optional<Gateway::LeaseAnswer> lease_answer(std::string_view text) {
  return parsed<Gateway::LeaseAnswer>(text, [](const json& message) {
    const json& answer = unwrapped(message);
    if (!answer.contains("header")) refuse();
    return Gateway::LeaseAnswer{number(answer, "ID"), std::chrono::seconds(number(answer, "TTL"))};
  });
}

std::optional<std::string> token_answer(std::string_view text) {
  return parsed<std::string>(
      text, [](const json& message) { return message.at("token").get<std::string>(); });
}

std::optional<WatchEvent> watch_event(std::string_view line) {
  return parsed<WatchEvent>(line, [](const json& message) {
    WatchEvent event;
    if (const auto it = message.find("error"); it != message.end()) {
      event.ended = it->is_object() ? it->value("message", "an error") : "an error";
      return event;
    }
    const json& answer = unwrapped(message);
    event.created = flag(answer, "created");
    if (flag(answer, "canceled")) event.ended = answer.value("cancel_reason", "cancelled");
    if (const auto it = answer.find("events"); it != answer.end()) {
      for (const json& item : *it) {
        if (item.value("type", "PUT") == "PUT") event.puts.push_back(key_value(item.at("kv")));
      }
    }
    return event;
  });
}

// A line each, for it is scanned several times on its way through etcd's gateway: "g GRANT", and
// "d KEY" with the document on the next one. A document has no line break in it, and a key that had
// one would be of no name.
std::string message(const Message& message) {
  std::string text;
  for (const GrantId grant : message.grants) text += "g " + to_string(grant) + "\n";
  for (const auto& [key, document] : message.documents) {
    if (key.find('\n') != std::string::npos) continue;
    text += "d " + key + "\n" + document + "\n";
  }
  return text;
}

std::optional<Message> message(std::string_view text) {
  Message message;
  while (!text.empty()) {
    const auto head = cut_line(text);
    if (!head || head->size() < 2) return std::nullopt;
    const std::string_view what = head->substr(2);
    if (head->starts_with("g ")) {
      const auto grant = parse_grant_id(what);
      if (!grant) return std::nullopt;
      message.grants.push_back(*grant);
    } else if (head->starts_with("d ")) {
      const auto document = cut_line(text);
      if (!document) return std::nullopt;
      message.documents.insert_or_assign(std::string(what), std::string(*document));
    } else {
      return std::nullopt;
    }
  }
  return message;
}

Problem problem(std::string_view text) {
  const auto found = parsed<Problem>(text, [](const json& message) {
    const json& inner =
        message.contains("error") && message["error"].is_object() ? message["error"] : message;
    return Problem{
        static_cast<int>(number(inner, inner.contains("grpc_code") ? "grpc_code" : "code")),
        inner.value("message", inner.value("error", ""))};
  });
  return found.value_or(Problem{0, "an answer that is not etcd's"});
}

std::string field(std::string_view text, const char* name) {
  return parsed<std::string>(text,
                             [&](const json& message) {
                               const auto it = message.find(name);
                               if (it == message.end()) return std::string();
                               return it->is_string() ? it->get<std::string>() : it->dump();
                             })
      .value_or("");
}

std::size_t member_count(std::string_view text) {
  return parsed<std::size_t>(text, [](const json& message) { return message.at("members").size(); })
      .value_or(0);
}

}  // namespace baton::store::etcd::wire
