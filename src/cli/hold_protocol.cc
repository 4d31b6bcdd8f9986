#include "cli/hold_protocol.h"

#include <algorithm>

#include "baton/name.h"
#include "cli/json_writer.h"
#include "json/json.h"

namespace baton::cli {
namespace {

constexpr std::size_t kMostQuoted = 40;

Error wrong(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

std::string shortened(std::string_view text) {
  if (text.size() <= kMostQuoted) return "'" + std::string(text) + "'";
  std::size_t end = kMostQuoted;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return "'" + std::string(text.substr(0, end)) + "…'";
}

Result<void> take_field(HoldOrder& order, bool& has_verb, const std::string& name,
                        const nlohmann::json& value) {
  const bool note = name == "note" && value.is_string();
  if (note) order.note.text = value.get<std::string>();
  const bool ordinal = name == "ordinal" && value.is_number_integer() &&
                       (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (ordinal) order.note.ordinal = value.get<std::int64_t>();
  if (note || ordinal) return {};
  const bool release = name == "release";
  if ((release || name == "status") && value.is_boolean() && value.get<bool>() && !has_verb) {
    order.verb = release ? HoldOrder::Verb::release : HoldOrder::Verb::status;
    has_verb = true;
    return {};
  }
  if (name == "note") return wrong("\"note\" is a text");
  if (name == "ordinal") return wrong("\"ordinal\" is a whole number of 64 bits");
  if (release || name == "status") return wrong("say \"release\":true or \"status\":true, once");
  return wrong("unknown field " + shortened(name) +
               "; there are release, note, ordinal and status");
}

Result<HoldOrder> parse_object(std::string_view line) {
  const nlohmann::json object = parse_json(line);
  if (!object.is_object()) return wrong("no JSON object: " + shortened(line));
  HoldOrder order;
  bool has_verb = false;
  for (const auto& [name, value] : object.items()) {
    if (auto ok = take_field(order, has_verb, name, value); !ok) return ok.error();
  }
  if (has_verb && order.verb == HoldOrder::Verb::status && !order.note.empty()) {
    return wrong("\"status\" stands alone");
  }
  if (!has_verb) order.verb = HoldOrder::Verb::note;
  if (!has_verb && order.note.empty()) return wrong("an object without a field says nothing");
  return order;
}

Result<HoldOrder> parse_order(std::string_view line) {
  if (!is_valid_utf8_text(line)) return wrong("a line is UTF-8");
  if (line.starts_with("{")) return parse_object(line);
  if (line == "release") return HoldOrder{.verb = HoldOrder::Verb::release};
  if (line == "status") return HoldOrder{.verb = HoldOrder::Verb::status};
  constexpr std::string_view kNote = "note ";
  if (line.starts_with(kNote)) {
    return HoldOrder{.verb = HoldOrder::Verb::note,
                     .note = {.text = std::string(line.substr(kNote.size()))}};
  }
  return wrong("unknown word " + shortened(line) + "; there are release, note TEXT and status");
}

void write_trust(JsonWriter& json, const HoldTrust& trust) {
  const auto left = std::chrono::floor<Millis>(trust.until - trust.now);
  json.field("trusted_ms", std::max<std::int64_t>(left.count(), 0));
  const auto until = std::chrono::floor<Millis>(trust.until.time_since_epoch());
  json.field("trusted_until_boottime_ms", until.count());
}

void write_note(JsonWriter& json, const Note& note) {
  json.key("note").begin_object().field("ordinal", note.ordinal);
  json.field("text", note.text).end_object();
}

JsonWriter begin(std::string_view event) {
  JsonWriter json;
  json.begin_object().field("event", event);
  return json;
}

std::string line(JsonWriter& json) { return json.end_object().text() + "\n"; }

}  // namespace

Result<HoldOrder> parse_hold_order(std::string_view line) {
  auto order = parse_order(line);
  if (order && order->note.text && order->note.text->size() > kMaxNoteBytes) {
    return wrong("a note has at most " + std::to_string(kMaxNoteBytes) + " bytes");
  }
  return order;
}

void HoldLines::add(std::string_view bytes) { bytes_ += bytes; }

std::optional<Result<std::string>> HoldLines::next() {
  while (true) {
    const auto end = bytes_.find('\n');
    if (end == std::string::npos && bytes_.size() <= kMaxHoldLine) {
      if (skipping_) bytes_.clear();
      return std::nullopt;
    }
    const bool too_long = std::min(end, bytes_.size()) > kMaxHoldLine && !skipping_;
    std::string found = bytes_.substr(0, end);
    const bool rest_of_one = skipping_;
    skipping_ = end == std::string::npos;
    bytes_.erase(0, skipping_ ? bytes_.size() : end + 1);
    if (too_long) return wrong("a line has at most " + std::to_string(kMaxHoldLine) + " bytes");
    if (rest_of_one) continue;
    if (found.ends_with('\r')) found.pop_back();
    if (!found.empty()) return found;
  }
}

std::string waiting_line(const std::vector<std::string>& names) {
  JsonWriter json = begin("waiting");
  json.key("names").begin_array();
  for (const auto& name : names) json.value(name);
  json.end_array();
  return line(json);
}

std::string granted_line(const HoldGrant& grant, const HoldTrust& trust) {
  JsonWriter json = begin("granted");
  json.key("names").begin_array();
  for (const auto& name : grant.names) json.value(name);
  json.end_array();
  json.field("name", grant.key).field("mode", short_name(grant.mode));
  json.field("token", std::to_string(grant.token)).field("grant", grant.grant);
  json.field("ttl_ms", grant.ttl.count());
  write_trust(json, trust);
  write_note(json, grant.note);
  json.key("fence").begin_array();
  for (const auto& token : grant.tokens) {
    json.begin_object().field("name", token.key).field("mode", short_name(token.mode));
    json.field("token", std::to_string(token.token)).end_object();
  }
  json.end_array();
  return line(json);
}

std::string renewed_line(const HoldTrust& trust) {
  JsonWriter json = begin("renewed");
  write_trust(json, trust);
  return line(json);
}

std::string noted_line(const Note& note) {
  JsonWriter json = begin("noted");
  write_note(json, note);
  return line(json);
}

std::string status_line(bool held, const HoldTrust& trust) {
  JsonWriter json = begin("status");
  json.field("held", held);
  write_trust(json, trust);
  return line(json);
}

std::string lost_line(std::string_view reason, Millis over_in) {
  JsonWriter json = begin("lost");
  json.field("reason", reason).field("over_in_ms", std::max<std::int64_t>(over_in.count(), 0));
  return line(json);
}

std::string released_line(std::string_view reason) {
  JsonWriter json = begin("released");
  json.field("reason", reason);
  return line(json);
}

std::string error_line(const Error& error, bool final) {
  JsonWriter json = begin("error");
  json.field("code", to_string(error.code)).field("message", error.message);
  json.field("retryable", error.retryable).field("in_doubt", error.in_doubt);
  json.field("final", final);
  return line(json);
}

}  // namespace baton::cli
