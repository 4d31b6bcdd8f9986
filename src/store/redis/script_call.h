#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "baton/store.h"
#include "core/lock_table.h"
#include "store/redis/commands.h"
#include "store/redis/layout.h"
#include "store/redis/script.h"

namespace baton::store::redis {

// A request for the shortest scripts: one name, no note to read or write.
[[nodiscard]] bool is_plain(const Request& request);

// Which requests can share a call.
struct Route {
  Script script = Script::apply;
  int slot = 0;  // in a cluster
  // Of plain acquires:
  std::string_view region;
  Millis hold{0};
  std::int64_t version = 0;
  bool operator==(const Route&) const = default;
};

// The arguments of every call of a script.
struct CallContext {
  std::string_view sha;
  std::int64_t not_after = 0;          // the server's time
  std::optional<core::StoreTime> now;  // a test's clock
};

// Requests of a batch that go to a script together.
class ScriptCall {
 public:
  ScriptCall(std::span<const Request> batch, const Route& route) : batch_(batch), route_(route) {}

  [[nodiscard]] const Route& route() const { return route_; }
  [[nodiscard]] bool has_room_for(const Request& request) const;
  void add(std::size_t place);

  // Where its requests stand in the batch.
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }
  [[nodiscard]] std::vector<std::size_t> take_places() { return std::move(places_); }

  void write(Commands& commands, const Layout& layout, bool clustered,
             const CallContext& context) const;

 private:
  void write_apply(Commands& commands, const Layout& layout, bool clustered,
                   const CallContext& context) const;
  void write_acquires(Commands& commands, const Layout& layout, bool clustered,
                      const CallContext& context) const;
  void write_releases(Commands& commands, const Layout& layout, const CallContext& context) const;
  void write_names(Commands& commands, const Layout& layout) const;

  std::span<const Request> batch_;
  Route route_;
  std::vector<std::size_t> places_;
  std::size_t names_ = 0;  // or fewer, if some have one in common
};

}  // namespace baton::store::redis
