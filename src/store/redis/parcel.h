#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "baton/store.h"
#include "core/lock_table.h"
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

// What every call of a script says.
struct Call {
  std::string_view sha;
  std::int64_t not_after = 0;          // the server's time
  std::optional<core::StoreTime> now;  // a test's clock
};

// Requests that go to a script together, and the keys that it may touch for them.
class Parcel {
 public:
  // In a cluster the version of the schema is in another slot, and is not asked for.
  Parcel(const Layout& layout, bool clustered, const Route& route)
      : layout_(layout), clustered_(clustered), route_(route) {}

  [[nodiscard]] const Route& route() const { return route_; }
  [[nodiscard]] bool has_room_for(const Request& request) const;

  // The request must outlive the parcel.
  void add(const Request& request, std::size_t place);

  // Where its requests stand in the batch.
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }

  void write(Commands& commands, const Call& call) const;

 private:
  struct Name {
    std::string_view key;
    std::size_t region;
  };
  std::size_t name_at(std::string_view key);
  [[nodiscard]] std::size_t first_name() const { return regions_.size() + (clustered_ ? 0 : 1); }
  [[nodiscard]] std::size_t key_count() const;
  void write_key(Commands& commands, std::string_view key) const;
  void write_keys(Commands& commands) const;
  void write_order(Commands& commands, const Call& call) const;
  void write_holders(Commands& commands, const Call& call) const;
  void write_ends(Commands& commands, const Call& call) const;
  [[nodiscard]] std::string order() const;
  void pack(class Packer& out, const Request& request, const std::vector<std::size_t>& at) const;

  const Layout& layout_;
  bool clustered_;
  Route route_;
  std::vector<std::size_t> places_;
  std::vector<std::string_view> regions_;
  std::vector<Name> names_;
  std::unordered_map<std::string_view, std::size_t> found_;  // by key; not needed for one name
  std::vector<const Request*> requests_;
  std::vector<std::vector<std::size_t>> at_;  // the names of each, for apply.lua
};

}  // namespace baton::store::redis
