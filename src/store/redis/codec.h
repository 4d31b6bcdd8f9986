#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  std::string_view not_after;  // the server's time
  std::string_view now;        // a test's clock, or nothing
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
  void write_arguments(Commands& commands, const Call& call) const;
  void write_holders(Commands& commands) const;
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

// What apply.lua answered. Reading throws std::runtime_error if it makes no sense.
struct Answer {
  std::int64_t server_time = 0;  // microseconds
  bool late = false;             // it came too late, and nothing has happened
  std::vector<Reply> replies;    // invalid with a message: the name's value is not ours
};
[[nodiscard]] Answer read_answer(std::string_view bytes, const std::vector<const Request*>& asked);

// A name's value as stored.
[[nodiscard]] core::NameState read_value(std::string_view value);

// A grant is sixteen bytes here, none nothing.
class GrantBytes {
 public:
  explicit GrantBytes(GrantId grant);
  [[nodiscard]] std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 16> bytes_;
  std::size_t size_;
};
[[nodiscard]] GrantId grant_in(std::string_view bytes);

}  // namespace baton::store::redis
