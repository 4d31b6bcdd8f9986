#include "core/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <stdexcept>

#include "json/json.h"

namespace baton::core {
namespace {

using nlohmann::json;

// Writes what nlohmann's json would dump, without building a value first: that takes a tenth of the
// time, and a document store writes a document with every change.
class Writer {
 public:
  void open(char bracket) {
    comma();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void name(std::string_view name) {
    value(name);
    text_ += ':';
    first_ = true;  // no comma before the value
  }
  void value(std::string_view text) {
    comma();
    is_plain(text) ? quote(text) : void(text_ += json(text).dump());
  }
  void value(bool flag) {
    comma();
    text_ += flag ? "true" : "false";
  }
  template <std::integral Number>
  void value(Number number) {
    comma();
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    text_.append(digits.begin(), end);
  }
  template <typename Value>
  void field(std::string_view name, const Value& content) {
    this->name(name);
    value(content);
  }
  void field(std::string_view name, const std::string& content) {
    field(name, std::string_view(content));
  }
  void field_if(std::string_view name, const std::string& content) {
    if (!content.empty()) field(name, content);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  static bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  }
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void quote(std::string_view text) {
    text_ += '"';
    text_ += text;
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

void write_claimant(Writer& out, const Claimant& who) {
  out.field("grant", to_string(who.grant));
  out.field("mode", short_name(who.mode));
  out.field("ttl", who.ttl.count());
  if (who.at_least_for.count() != 0) out.field("at_least_for", who.at_least_for.count());
  if (who.if_ordinal_below) out.field("if_ordinal_below", *who.if_ordinal_below);
  if (who.change.ordinal) out.field("set_ordinal", *who.change.ordinal);
  if (who.change.text) out.field("set_text", *who.change.text);
  out.field_if("predicate", who.predicate);
  out.field_if("owner", who.owner);
  out.field_if("channel", who.channel);
  if (who.metadata.empty()) return;
  out.name("metadata");
  out.open('{');
  for (const auto& [name, text] : who.metadata) {
    out.field(name, text);
  }
  out.close('}');
}

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

// The fields of one object, each read by its name. A field that is not read makes the document
// damaged: its content would be lost at the next write.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {
    if (!object.is_object()) refuse("not an object");
  }
  const json& required(const char* name) {
    ++taken_;
    return object_.at(name);
  }
  const json* optional(const char* name) {
    const auto it = object_.find(name);
    if (it == object_.end()) return nullptr;
    ++taken_;
    return &*it;
  }
  void done() const {
    if (taken_ != object_.size()) refuse("an unknown field");
  }

 private:
  const json& object_;
  std::size_t taken_ = 0;
};

// The JSON library would round a fraction and wrap what is out of range.
template <typename Number>
Number whole(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) {
      return static_cast<Number>(number);
    }
  } else if (std::is_signed_v<Number> && value.is_number_integer()) {
    return static_cast<Number>(value.get<std::int64_t>());
  }
  refuse("not a whole number");
}

std::int64_t whole(const json& value) { return whole<std::int64_t>(value); }

Millis span_of(const json& value) {
  const Millis span(whole(value));
  if (!is_stored_span(span)) refuse("a time span out of range");
  return span;
}

StoreTime time_of(const json& value) {
  const StoreTime time(whole(value));
  if (!is_stored_time(time)) refuse("a time out of range");
  return time;
}

const std::string& text_of(const json& value) { return value.get_ref<const std::string&>(); }

// Written only if not empty.
std::string optional_text(Fields& fields, const char* name) {
  const json* value = fields.optional(name);
  if (value == nullptr) return {};
  if (text_of(*value).empty()) refuse(std::string(name) + " says nothing");
  return text_of(*value);
}

bool optional_flag(Fields& fields, const char* name, bool written) {
  const json* value = fields.optional(name);
  if (value == nullptr) return !written;
  if (value->get<bool>() != written) refuse(std::string(name) + " says nothing");
  return written;
}

GrantId grant_of(Fields& fields) {
  const std::string& text = text_of(fields.required("grant"));
  const auto grant = parse_grant_id(text);
  if (!grant || to_string(*grant) != text) refuse("a broken grant id");
  return *grant;
}

void to_claimant(Fields& fields, Claimant& who) {
  who.grant = grant_of(fields);
  const std::string& mode = text_of(fields.required("mode"));
  who.mode = parse_mode(mode).value_or(Mode::X);
  if (short_name(who.mode) != mode) refuse("an unknown mode");
  who.ttl = span_of(fields.required("ttl"));
  if (const json* value = fields.optional("at_least_for")) {
    who.at_least_for = span_of(*value);
    if (who.at_least_for == Millis{0}) refuse("at_least_for says nothing");
  }
  if (const json* value = fields.optional("if_ordinal_below")) who.if_ordinal_below = whole(*value);
  if (const json* value = fields.optional("set_ordinal")) who.change.ordinal = whole(*value);
  if (const json* value = fields.optional("set_text")) who.change.text = text_of(*value);
  who.predicate = optional_text(fields, "predicate");
  who.owner = optional_text(fields, "owner");
  who.channel = optional_text(fields, "channel");
  if (const json* value = fields.optional("metadata")) {
    who.metadata = value->get<Metadata>();
    if (who.metadata.empty()) refuse("metadata says nothing");
  }
}

constexpr const char* kStates[] = {"held", "handed", "parked"};

void write_holder(Writer& out, const Holder& holder) {
  write_claimant(out, holder);
  out.field("token", holder.token);
  out.field("state", std::string_view(kStates[static_cast<std::size_t>(holder.state)]));
  out.field("since", holder.since.count());
  out.field("expires", holder.expires.count());
  if (holder.revoked) out.field("revoked", holder.reason);
}

Holder to_holder(const json& object) {
  Fields fields(object);
  Holder holder;
  to_claimant(fields, holder);
  holder.token = whole<Token>(fields.required("token"));
  const std::string& state = text_of(fields.required("state"));
  const auto* const found = std::find(std::begin(kStates), std::end(kStates), state);
  if (found == std::end(kStates)) refuse("an unknown state");
  holder.state = static_cast<HolderState>(found - std::begin(kStates));
  holder.since = time_of(fields.required("since"));
  holder.expires = time_of(fields.required("expires"));
  if (const json* reason = fields.optional("revoked")) {
    holder.revoked = true;
    holder.reason = text_of(*reason);
  }
  fields.done();
  return holder;
}

void write_waiter(Writer& out, const Waiter& waiter) {
  write_claimant(out, waiter);
  out.field("turn", waiter.turn);
  out.field("stale", waiter.stale.count());
  out.field("handoff", waiter.claim_within.count());
  if (!waiter.alone) out.field("alone", false);
  if (waiter.converting) out.field("converting", true);
}

void write_tombstone(Writer& out, const Tombstone& tombstone) {
  out.field("grant", to_string(tombstone.grant));
  out.field("until", tombstone.until.count());
}

void write_note(Writer& out, const Note& note) {
  out.name("note");
  out.open('{');
  out.field("ordinal", note.ordinal);
  out.field("text", note.text);
  out.close('}');
}

template <typename Item>
void write_list(Writer& out, std::string_view name, const std::vector<Item>& items,
                void (*write)(Writer&, const Item&)) {
  if (items.empty()) return;
  out.name(name);
  out.open('[');
  for (const Item& item : items) {
    out.open('{');
    write(out, item);
    out.close('}');
  }
  out.close(']');
}

Waiter to_waiter(const json& object) {
  Fields fields(object);
  Waiter waiter;
  to_claimant(fields, waiter);
  waiter.turn = whole<std::uint64_t>(fields.required("turn"));
  waiter.stale = time_of(fields.required("stale"));
  waiter.claim_within = span_of(fields.required("handoff"));
  waiter.alone = optional_flag(fields, "alone", false);
  waiter.converting = optional_flag(fields, "converting", true);
  fields.done();
  return waiter;
}

Tombstone to_tombstone(const json& object) {
  Fields fields(object);
  Tombstone tombstone{grant_of(fields), time_of(fields.required("until"))};
  fields.done();
  return tombstone;
}

Note to_note(const json& object) {
  Fields fields(object);
  Note note{whole(fields.required("ordinal")), text_of(fields.required("text"))};
  fields.done();
  if (note == Note{}) refuse("a note says nothing");
  return note;
}

}  // namespace

std::string to_document(const NameState& state) {
  Writer out;
  out.open('{');
  write_list(out, "holders", state.holders, write_holder);
  write_list(out, "waiters", state.waiters, write_waiter);
  write_list(out, "tombstones", state.tombstones, write_tombstone);
  if (state.note != Note{}) write_note(out, state.note);
  out.close('}');
  return out.take();
}

Result<NameState> from_document(std::string_view text) {
  try {
    const json document = parse_json_or_throw(text);
    if (!document.is_object()) refuse("not an object");
    NameState state;
    for (const auto& [part, content] : document.items()) {
      // A value that is no list, or an empty one, is never written.
      if (part != "note" && (!content.is_array() || content.empty())) refuse("no list: " + part);
      if (part == "holders") {
        for (const auto& item : content) state.holders.push_back(to_holder(item));
      } else if (part == "waiters") {
        for (const auto& item : content) state.waiters.push_back(to_waiter(item));
      } else if (part == "tombstones") {
        for (const auto& item : content) state.tombstones.push_back(to_tombstone(item));
      } else if (part == "note") {
        state.note = to_note(content);
      } else {
        refuse("an unknown part '" + part + "'");
      }
    }
    return state;
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_store,
                 .message = std::string("a damaged lock document: ") + problem.what()};
  }
}

}  // namespace baton::core
