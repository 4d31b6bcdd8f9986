#include "store/redis/parcel.h"

#include <algorithm>

#include "core/apply.h"
#include "store/common/alike.h"
#include "store/redis/grant_bytes.h"
#include "store/redis/msgpack.h"
#include "store/redis/order.h"

namespace baton::store::redis {
namespace {

constexpr std::size_t kMaxRequests = 256;  // in a call: others wait while the script runs
constexpr std::size_t kMaxNames = 1000;    // Lua's stack bounds it

// How long a value is kept past the end of all that it says, for the server's clock for keys may be
// a moment behind, and tests let time stand still. The same as in apply.lua.
constexpr Millis kKeptOn{10};
constexpr Millis kKeptInTests{600'000};

// The value of a plain holder alone on its name has three parts, after when it began and ends.
void pack_spans(Packer& out, const Request& request) {
  out.real(request.ttl.count()).real(request.at_least_for.count());
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

bool Parcel::has_room_for(const Request& request) const {
  return places_.size() < kMaxRequests && names_ + request.asks.size() <= kMaxNames;
}

void Parcel::add(std::size_t place) {
  places_.push_back(place);
  names_ += batch_[place].asks.size();
}

void Parcel::write(Commands& commands, const Layout& layout, bool clustered,
                   const Call& call) const {
  commands.begin();
  commands.word("EVALSHA");
  commands.word(call.sha);
  switch (route_.script) {
    case Script::apply: write_order(commands, layout, clustered, call); break;
    case Script::acquire_free: write_acquires(commands, layout, clustered, call); break;
    case Script::release_held: write_releases(commands, layout, call); break;
  }
  commands.end();
}

void Parcel::write_order(Commands& commands, const Layout& layout, bool clustered,
                         const Call& call) const {
  const Order order(batch_, places_, clustered);
  commands.number(static_cast<std::int64_t>(order.key_count()));
  order.write_keys(commands, layout);
  commands.number(call.not_after);
  if (call.now) {
    commands.number(call.now->count());
  } else {
    commands.word("");
  }
  commands.packed([&](Packer& out) { order.pack(out); });
  commands.word(layout.channels());
  commands.word(clustered ? std::string_view() : layout.floor());
}

void Parcel::write_names(Commands& commands, const Layout& layout) const {
  for (const std::size_t place : places_) write_name(commands, layout, batch_[place].asks[0].key);
}

// What many have in common is said once.
void Parcel::write_acquires(Commands& commands, const Layout& layout, bool clustered,
                            const Call& call) const {
  const auto count = static_cast<std::int64_t>(places_.size());
  commands.number(count + (clustered ? 1 : 2));
  write_names(commands, layout);
  write_counter(commands, layout, route_.region);
  if (!clustered) commands.word(layout.version());
  commands.number(route_.version);
  commands.number((route_.hold + (call.now ? kKeptInTests : kKeptOn)).count());
  commands.packed([&](Packer& out) {
    out.bare(call.not_after).bare(call.now ? call.now->count() : -1);
    out.bare(core::StoreTime(route_.hold).count()).bare(count);
  });
  const Request& first = batch_[places_[0]];
  const bool alike =
      count > 1 && std::all_of(places_.begin(), places_.end(),
                               [&](std::size_t place) { return are_alike(batch_[place], first); });
  for (const std::size_t place : places_) {
    commands.packed([&](Packer& out) {
      if (!alike) pack_spans(out, batch_[place]);
      pack_grant(out, batch_[place]);
      if (!alike) pack_terms(out, batch_[place]);
    });
  }
  if (!alike) return;
  commands.packed([&](Packer& out) { pack_spans(out, first); });
  commands.packed([&](Packer& out) { pack_terms(out, first); });
}

void Parcel::write_releases(Commands& commands, const Layout& layout, const Call& call) const {
  commands.number(static_cast<std::int64_t>(places_.size()));
  write_names(commands, layout);
  for (const std::size_t place : places_) {
    commands.packed([&](Packer& out) {
      out.bare(0);  // at_least_for
      pack_grant(out, batch_[place]);
    });
  }
  if (call.now) commands.number(call.now->count());
}

}  // namespace baton::store::redis
