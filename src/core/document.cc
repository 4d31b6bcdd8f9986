#include "core/document.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace baton::core {
namespace {

using nlohmann::json;

void put_if(json& object, const char* name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

json from_claimant(const Claimant& who) {
  json object{{"grant", to_string(who.grant)},
              {"mode", std::string(short_name(who.mode))},
              {"ttl", who.ttl.count()}};
  if (who.at_least_for.count() != 0) object["at_least_for"] = who.at_least_for.count();
  if (who.if_ordinal_below) object["if_ordinal_below"] = *who.if_ordinal_below;
  if (who.change.ordinal) object["set_ordinal"] = *who.change.ordinal;
  if (who.change.text) object["set_text"] = *who.change.text;
  put_if(object, "predicate", who.predicate);
  put_if(object, "owner", who.owner);
  put_if(object, "channel", who.channel);
  if (!who.metadata.empty()) object["metadata"] = who.metadata;
  return object;
}

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

// The fields of one object, each asked for by its name. What nobody asks for is a name that has
// been damaged, and what it said would be lost.
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

const std::string& text_of(const json& value) { return value.get_ref<const std::string&>(); }

// Written only if there is something to say.
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
  who.ttl = Millis(whole(fields.required("ttl")));
  if (const json* value = fields.optional("at_least_for")) {
    who.at_least_for = Millis(whole(*value));
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

json from_holder(const Holder& holder) {
  json object = from_claimant(holder);
  object["token"] = holder.token;
  object["state"] = kStates[static_cast<std::size_t>(holder.state)];
  object["since"] = holder.since.count();
  object["expires"] = holder.expires.count();
  if (holder.revoked) object["revoked"] = holder.reason;
  return object;
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
  holder.since = StoreTime(whole(fields.required("since")));
  holder.expires = StoreTime(whole(fields.required("expires")));
  if (const json* reason = fields.optional("revoked")) {
    holder.revoked = true;
    holder.reason = text_of(*reason);
  }
  fields.done();
  return holder;
}

json from_waiter(const Waiter& waiter) {
  json object = from_claimant(waiter);
  object["turn"] = waiter.turn;
  object["stale"] = waiter.stale.count();
  object["handoff"] = waiter.handoff.count();
  if (!waiter.alone) object["alone"] = false;
  if (waiter.converting) object["converting"] = true;
  return object;
}

Waiter to_waiter(const json& object) {
  Fields fields(object);
  Waiter waiter;
  to_claimant(fields, waiter);
  waiter.turn = whole<std::uint64_t>(fields.required("turn"));
  waiter.stale = StoreTime(whole(fields.required("stale")));
  waiter.handoff = Millis(whole(fields.required("handoff")));
  waiter.alone = optional_flag(fields, "alone", false);
  waiter.converting = optional_flag(fields, "converting", true);
  fields.done();
  return waiter;
}

Tombstone to_tombstone(const json& object) {
  Fields fields(object);
  Tombstone tombstone{grant_of(fields), StoreTime(whole(fields.required("until")))};
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
  json document = json::object();
  for (const Holder& holder : state.holders) document["holders"].push_back(from_holder(holder));
  for (const Waiter& waiter : state.waiters) document["waiters"].push_back(from_waiter(waiter));
  for (const Tombstone& tombstone : state.tombstones) {
    document["tombstones"].push_back(
        {{"grant", to_string(tombstone.grant)}, {"until", tombstone.until.count()}});
  }
  if (state.note != Note{}) {
    document["note"] = {{"ordinal", state.note.ordinal}, {"text", state.note.text}};
  }
  return document.dump();
}

Result<NameState> from_document(std::string_view text) {
  try {
    const json document = json::parse(text);
    if (!document.is_object()) refuse("not an object");
    NameState state;
    for (const auto& [part, content] : document.items()) {
      // Anything else would count as a list without entries, and those are never written.
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
