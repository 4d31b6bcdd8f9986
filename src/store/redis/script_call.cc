#include "store/redis/script_call.h"

#include <algorithm>

#include "core/apply.h"
#include "store/common/same_terms.h"
#include "store/redis/apply_arguments.h"
#include "store/redis/msgpack.h"

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

void pack_grant(Packer& out, const Request& request) { out.grant(request.grant); }

void pack_terms(Packer& out, const Request& request) {
  out.number(static_cast<std::int64_t>(request.targets[0].mode)).number(0).flag(false);
  pack_claimant(out, request);
  out.array(0).array(0).text("0").text("");
}

}  // namespace

bool is_plain(const Request& request) {
  if (request.targets.size() != 1 || !request.change.empty()) return false;
  if (request.verb == Verb::release) return request.to.empty();
  return request.verb == Verb::acquire && !request.if_ordinal_below &&
         request.targets[0].key != core::kSchemaKey;
}

bool ScriptCall::has_room_for(const Request& request) const {
  return places_.size() < kMaxRequests && names_ + request.targets.size() <= kMaxNames;
}

void ScriptCall::add(std::size_t place) {
  places_.push_back(place);
  names_ += batch_[place].targets.size();
}

void ScriptCall::write(Commands& commands, const Layout& layout, bool clustered,
                       const CallContext& context) const {
  commands.begin();
  commands.word("EVALSHA");
  commands.word(context.sha);
  switch (route_.script) {
    case Script::apply: write_apply(commands, layout, clustered, context); break;
    case Script::acquire_free: write_acquires(commands, layout, clustered, context); break;
    case Script::release_held: write_releases(commands, layout, context); break;
  }
  commands.end();
}

void ScriptCall::write_apply(Commands& commands, const Layout& layout, bool clustered,
                             const CallContext& context) const {
  const ApplyArguments arguments(batch_, places_, clustered);
  commands.number(static_cast<std::int64_t>(arguments.key_count()));
  arguments.write_keys(commands, layout);
  commands.number(context.not_after);
  if (context.now) {
    commands.number(context.now->count());
  } else {
    commands.word("");
  }
  commands.packed([&](Packer& out) { arguments.pack(out); });
  commands.word(layout.channels());
  commands.word(clustered ? std::string_view() : layout.floor());
}

void ScriptCall::write_names(Commands& commands, const Layout& layout) const {
  for (const std::size_t place : places_)
    write_name(commands, layout, batch_[place].targets[0].key);
}

// Sends the values that all these acquires share only once.
void ScriptCall::write_acquires(Commands& commands, const Layout& layout, bool clustered,
                                const CallContext& context) const {
  const auto count = static_cast<std::int64_t>(places_.size());
  commands.number(count + (clustered ? 1 : 2));
  write_names(commands, layout);
  write_counter(commands, layout, route_.region);
  if (!clustered) commands.word(layout.version());
  commands.number(route_.version);
  commands.number((route_.hold + (context.now ? kKeptInTests : kKeptOn)).count());
  commands.packed([&](Packer& out) {
    out.bare(context.not_after).bare(context.now ? context.now->count() : -1);
    out.bare(core::StoreTime(route_.hold).count()).bare(count);
  });
  const Request& first = batch_[places_[0]];
  const bool same =
      count > 1 && std::all_of(places_.begin(), places_.end(),
                               [&](std::size_t place) { return same_terms(batch_[place], first); });
  for (const std::size_t place : places_) {
    commands.packed([&](Packer& out) {
      if (!same) pack_spans(out, batch_[place]);
      pack_grant(out, batch_[place]);
      if (!same) pack_terms(out, batch_[place]);
    });
  }
  if (!same) return;
  commands.packed([&](Packer& out) { pack_spans(out, first); });
  commands.packed([&](Packer& out) { pack_terms(out, first); });
}

void ScriptCall::write_releases(Commands& commands, const Layout& layout,
                                const CallContext& context) const {
  commands.number(static_cast<std::int64_t>(places_.size()));
  write_names(commands, layout);
  for (const std::size_t place : places_) {
    commands.packed([&](Packer& out) {
      out.bare(0);  // at_least_for
      pack_grant(out, batch_[place]);
    });
  }
  if (context.now) commands.number(context.now->count());
}

}  // namespace baton::store::redis
