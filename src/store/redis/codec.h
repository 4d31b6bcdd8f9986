#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/lock_table.h"
#include "store/redis/layout.h"

namespace baton::store::redis {

// Requests that go to the script together, and the keys that it may touch for them.
class Parcel {
 public:
  // In a cluster the version of the schema is in another slot, and is not asked for.
  Parcel(const Layout& layout, bool clustered) : layout_(layout), clustered_(clustered) {}

  // The request must outlive the parcel.
  void add(const Request& request, std::size_t place);

  // How many keys it would have with this request.
  [[nodiscard]] std::size_t keys_with(const Request& request) const {
    return names_.size() + request.asks.size();
  }

  // Where its requests stand in the batch.
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }

  // Of the script's call: KEYS and the third of ARGV.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::string order() const;

 private:
  struct Name {
    std::string_view key;
    std::size_t region;
  };
  std::size_t name_at(std::string_view key);
  [[nodiscard]] std::size_t first_name() const { return regions_.size() + (clustered_ ? 0 : 1); }
  void pack(class Packer& out, const Request& request, const std::vector<std::size_t>& at) const;

  const Layout& layout_;
  bool clustered_;
  std::vector<std::size_t> places_;
  std::vector<std::string_view> regions_;
  std::vector<Name> names_;
  std::unordered_map<std::string_view, std::size_t> found_;  // by key; not needed for one name
  std::vector<std::pair<const Request*, std::vector<std::size_t>>> requests_;
};

// What the script answered. Reading throws std::runtime_error if it makes no sense.
struct Answer {
  std::int64_t server_time = 0;  // microseconds
  bool late = false;             // it came too late, and nothing has happened
  std::vector<Reply> replies;    // invalid with a message: the name's value is not ours
};
[[nodiscard]] Answer read_answer(std::string_view bytes, const std::vector<const Request*>& asked);

// A name's value as stored.
[[nodiscard]] core::NameState read_value(std::string_view value);

// A grant is sixteen bytes here.
[[nodiscard]] std::string grant_bytes(GrantId grant);
[[nodiscard]] GrantId grant_in(std::string_view bytes);

}  // namespace baton::store::redis
