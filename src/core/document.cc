#include "core/document.h"

#include <nlohmann/json.hpp>

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

GrantId grant_of(const json& object) {
  const auto grant = parse_grant_id(object.at("grant").get<std::string>());
  if (!grant) throw std::runtime_error("a broken grant id");
  return *grant;
}

void to_claimant(const json& object, Claimant& who) {
  who.grant = grant_of(object);
  const auto mode = parse_mode(object.at("mode").get<std::string>());
  if (!mode) throw std::runtime_error("an unknown mode");
  who.mode = *mode;
  who.ttl = Millis(object.at("ttl").get<std::int64_t>());
  who.at_least_for = Millis(object.value("at_least_for", std::int64_t{0}));
  if (object.contains("if_ordinal_below")) {
    who.if_ordinal_below = object["if_ordinal_below"].get<std::int64_t>();
  }
  if (object.contains("set_ordinal"))
    who.change.ordinal = object["set_ordinal"].get<std::int64_t>();
  if (object.contains("set_text")) who.change.text = object["set_text"].get<std::string>();
  who.predicate = object.value("predicate", std::string());
  who.owner = object.value("owner", std::string());
  who.channel = object.value("channel", std::string());
  who.metadata = object.value("metadata", Metadata{});
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
  Holder holder;
  to_claimant(object, holder);
  holder.token = object.at("token").get<Token>();
  const auto state = object.at("state").get<std::string>();
  const auto* const found = std::find(std::begin(kStates), std::end(kStates), state);
  if (found == std::end(kStates)) throw std::runtime_error("an unknown state");
  holder.state = static_cast<HolderState>(found - std::begin(kStates));
  holder.since = StoreTime(object.at("since").get<std::int64_t>());
  holder.expires = StoreTime(object.at("expires").get<std::int64_t>());
  if (object.contains("revoked")) {
    holder.revoked = true;
    holder.reason = object["revoked"].get<std::string>();
  }
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
  Waiter waiter;
  to_claimant(object, waiter);
  waiter.turn = object.at("turn").get<std::uint64_t>();
  waiter.stale = StoreTime(object.at("stale").get<std::int64_t>());
  waiter.handoff = Millis(object.at("handoff").get<std::int64_t>());
  waiter.alone = object.value("alone", true);
  waiter.converting = object.value("converting", false);
  return waiter;
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
    if (!document.is_object()) throw std::runtime_error("not an object");
    NameState state;
    for (const auto& [part, content] : document.items()) {
      // Anything else would count as a list without entries.
      if (part != "note" && !content.is_array()) throw std::runtime_error("not a list: " + part);
      if (part == "holders") {
        for (const auto& item : content) state.holders.push_back(to_holder(item));
      } else if (part == "waiters") {
        for (const auto& item : content) state.waiters.push_back(to_waiter(item));
      } else if (part == "tombstones") {
        for (const auto& item : content) {
          state.tombstones.push_back(
              {grant_of(item), StoreTime(item.at("until").get<std::int64_t>())});
        }
      } else if (part == "note") {
        state.note.ordinal = content.at("ordinal").get<std::int64_t>();
        state.note.text = content.at("text").get<std::string>();
      } else {
        throw std::runtime_error("an unknown part '" + part + "'");
      }
    }
    return state;
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_store,
                 .message = std::string("a damaged lock document: ") + problem.what()};
  }
}

}  // namespace baton::core
