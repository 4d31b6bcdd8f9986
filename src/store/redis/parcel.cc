#include "store/redis/parcel.h"

#include <algorithm>

#include "core/apply.h"
#include "store/common/alike.h"
#include "store/redis/grant_bytes.h"
#include "store/redis/msgpack.h"

namespace baton::store::redis {
namespace {

constexpr std::size_t kMaxRequests = 256;  // in a call: others wait while the script runs
constexpr std::size_t kMaxKeys = 1000;     // Lua's stack bounds it

void pack_ordinal(Packer& out, const std::optional<std::int64_t>& ordinal) {
  if (ordinal) {
    out.text(std::to_string(*ordinal));
  } else {
    out.flag(false);
  }
}

void pack_change(Packer& out, const NoteChange& change) {
  pack_ordinal(out, change.ordinal);
  if (change.text) {
    out.text(*change.text);
  } else {
    out.flag(false);
  }
}

// Nothing where the schema's version is not asked about.
void pack_version(Packer& out, const Request& request) {
  if (request.asks[0].key == core::kSchemaKey) {
    out.flag(false);
  } else {
    out.text(std::to_string(request.schema_version));
  }
}

// The last seven of a holder, as they will stand in the name's value.
void pack_claimant(Packer& out, const Request& request) {
  pack_ordinal(out, request.if_ordinal_below);
  pack_change(out, request.change);
  out.text(request.predicate).text(request.owner).text(request.channel);
  if (request.metadata.empty()) {
    out.text("");
    return;
  }
  Packer metadata;
  for (const auto& [name, value] : request.metadata) metadata.text(name).text(value);
  out.text(metadata.bytes());
}

// How long a value is kept past the end of all that it says, for the server's clock for keys may be
// a moment behind, and tests let time stand still. The same as in apply.lua.
constexpr Millis kKeptOn{10};
constexpr Millis kKeptInTests{600'000};

// The value of a plain holder alone on its name has three parts, after when it began and ends.
void pack_spans(Packer& out, Millis ttl, Millis at_least_for) {
  out.real(ttl.count()).real(at_least_for.count());
}

void pack_grant(Packer& out, const Request& request) { out.text(GrantBytes(request.grant).text()); }

void pack_terms(Packer& out, const Request& request) {
  out.number(static_cast<std::int64_t>(request.asks[0].mode)).number(0).flag(false);
  pack_claimant(out, request);
  out.array(0).array(0).text("0").text("");
}

}  // namespace

bool is_plain(const Request& request) {
  if (request.asks.size() != 1 || !request.change.empty()) return false;
  if (request.verb == Verb::release) return request.to.empty();
  return request.verb == Verb::acquire && !request.if_ordinal_below &&
         request.asks[0].key != core::kSchemaKey;
}

std::size_t Parcel::name_at(std::string_view key) {
  if (names_.size() == 1 && found_.empty()) found_.emplace(names_[0].key, 0);
  if (const auto it = found_.find(key); it != found_.end()) return it->second;
  const std::string_view region = Layout::region_of(key);
  const auto known = std::find(regions_.begin(), regions_.end(), region);
  names_.push_back({key, static_cast<std::size_t>(known - regions_.begin())});
  if (known == regions_.end()) regions_.push_back(region);
  if (names_.size() > 1) found_.emplace(key, names_.size() - 1);
  return names_.size() - 1;
}

bool Parcel::has_room_for(const Request& request) const {
  return places_.size() < kMaxRequests && names_.size() + request.asks.size() <= kMaxKeys;
}

void Parcel::add(const Request& request, std::size_t place) {
  places_.push_back(place);
  requests_.push_back(&request);
  if (route_.script != Script::apply) return;
  std::vector<std::size_t> at;
  for (const Ask& ask : request.asks) at.push_back(name_at(ask.key));
  at_.push_back(std::move(at));
}

std::size_t Parcel::key_count() const {
  switch (route_.script) {
    case Script::apply: return first_name() + names_.size();
    case Script::acquire_free: return requests_.size() + (clustered_ ? 1 : 2);
    case Script::release_held: break;
  }
  return requests_.size();
}

void Parcel::write(Commands& commands, const Call& call) const {
  const std::size_t keys = key_count();
  commands.begin();
  commands.word("EVALSHA");
  commands.word(call.sha);
  commands.number(static_cast<std::int64_t>(keys));
  write_keys(commands);
  switch (route_.script) {
    case Script::apply: write_order(commands, call); break;
    case Script::acquire_free: write_holders(commands, call); break;
    case Script::release_held: write_ends(commands, call); break;
  }
  commands.end();
}

void Parcel::write_key(Commands& commands, std::string_view key) const {
  const std::string_view region = Layout::region_of(key);
  commands.word({layout_.start(), region, "}", key.substr(region.size())});
}

void Parcel::write_keys(Commands& commands) const {
  const auto counter = [&](std::string_view region) {
    commands.word({layout_.start(), region, "}#last"});
  };
  if (route_.script == Script::apply) {
    if (!clustered_) commands.word(layout_.version());
    for (const auto region : regions_) counter(region);
    for (const auto& name : names_) write_key(commands, name.key);
    return;
  }
  for (const Request* request : requests_) write_key(commands, request->asks[0].key);
  if (route_.script == Script::release_held) return;
  counter(route_.region);
  if (!clustered_) commands.word(layout_.version());
}

void Parcel::write_order(Commands& commands, const Call& call) const {
  commands.number(call.not_after);
  if (call.now) {
    commands.number(call.now->count());
  } else {
    commands.word("");
  }
  commands.word(order());
  commands.word(layout_.channels());
  commands.word(clustered_ ? std::string_view() : layout_.floor());
}

// What many have in common is said once.
void Parcel::write_holders(Commands& commands, const Call& call) const {
  const Request& first = *requests_[0];
  const bool alike = requests_.size() > 1 &&
                     std::all_of(requests_.begin(), requests_.end(),
                                 [&](const Request* one) { return are_alike(*one, first); });
  commands.number(route_.version);
  commands.number((route_.hold + (call.now ? kKeptInTests : kKeptOn)).count());
  Packer out;
  out.real(call.not_after).real(call.now ? call.now->count() : -1);
  out.real(core::StoreTime(route_.hold).count()).real(static_cast<std::int64_t>(requests_.size()));
  const auto write = [&] {
    commands.word(out.bytes());
    out.clear();
  };
  write();
  for (const Request* request : requests_) {
    if (!alike) pack_spans(out, request->ttl, request->at_least_for);
    pack_grant(out, *request);
    if (!alike) pack_terms(out, *request);
    write();
  }
  if (!alike) return;
  pack_spans(out, first.ttl, first.at_least_for);
  write();
  pack_terms(out, first);
  write();
}

void Parcel::write_ends(Commands& commands, const Call& call) const {
  constexpr std::string_view kNoAtLeast("\0\0\0\0\0\0\0\0", 8);
  Packer grant;
  for (const Request* request : requests_) {
    grant.clear();
    pack_grant(grant, *request);
    commands.word({kNoAtLeast, grant.bytes()});
  }
  if (call.now) commands.number(call.now->count());
}

// As verbs_more.lua reads it.
void Parcel::pack(Packer& out, const Request& request, const std::vector<std::size_t>& at) const {
  static constexpr std::size_t kSizes[] = {11, 6, 6, 6, 7, 5, 5, 3};
  out.array(kSizes[static_cast<std::size_t>(request.verb)]);
  out.number(static_cast<std::int64_t>(request.verb)).text(GrantBytes(request.grant).text());
  const bool single = at.size() == 1;
  const auto each = [&](auto one) {
    if (!single) out.array(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) out.number(one(i));
  };
  each([&](std::size_t i) { return static_cast<std::int64_t>(first_name() + at[i] + 1); });
  const auto modes = [&] {
    each([&](std::size_t i) { return static_cast<std::int64_t>(request.asks[i].mode); });
  };
  switch (request.verb) {
    case Verb::acquire:
      modes();
      pack_version(out, request);
      out.number(request.ticket.count()).number(request.handoff.count());
      out.number(request.ttl.count()).number(request.at_least_for.count());
      out.flag(single && !request.if_ordinal_below && request.change.empty());
      {
        Packer claimant;
        pack_claimant(claimant, request);
        out.text(claimant.bytes());
      }
      break;
    case Verb::claim:
    case Verb::convert:
      modes();
      pack_version(out, request);
      out.number(request.ticket.count());
      break;
    case Verb::renew:
      out.flag(single && request.change.empty());
      pack_change(out, request.change);
      break;
    case Verb::release:
      out.flag(single && request.change.empty() && request.to.empty());
      pack_change(out, request.change);
      out.text(request.to);
      break;
    case Verb::cancel: out.number(request.tombstone.count()).flag(request.converting); break;
    case Verb::break_: out.text(request.reason).flag(request.immediately); break;
    case Verb::get: break;
  }
}

std::string Parcel::order() const {
  Packer out;
  out.array(5).number(clustered_ ? 0 : 1).number(static_cast<std::int64_t>(regions_.size()));
  if (regions_.size() == 1) {
    out.flag(false);
  } else {
    out.array(first_name() + names_.size());
    for (std::size_t i = 0; i < first_name(); ++i) out.number(0);
    for (const auto& name : names_) out.number(static_cast<std::int64_t>(name.region + 1));
  }
  const auto schema = std::find_if(names_.begin(), names_.end(),
                                   [](const Name& name) { return name.key == core::kSchemaKey; });
  if (clustered_ || schema == names_.end()) {
    out.flag(false);
  } else {
    out.number(static_cast<std::int64_t>(first_name()) + (schema - names_.begin()) + 1);
  }
  out.array(requests_.size());
  for (std::size_t i = 0; i < requests_.size(); ++i) pack(out, *requests_[i], at_[i]);
  return out.take();
}

}  // namespace baton::store::redis
