#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "baton/store.h"
#include "store/redis/commands.h"
#include "store/redis/layout.h"
#include "store/redis/msgpack.h"

namespace baton::store::redis {

// What apply.lua is asked to do: some requests of a batch, which must outlive this, and the keys
// that it may touch for them.
class ApplyArguments {
 public:
  // In a cluster the version of the schema is in another slot, and is not asked for.
  ApplyArguments(std::span<const Request> batch, const std::vector<std::size_t>& places,
                 bool clustered);

  [[nodiscard]] std::size_t key_count() const { return first_name() + names_.size(); }
  void write_keys(Commands& commands, const Layout& layout) const;
  void pack(Packer& out) const;  // what to do

 private:
  struct Name {
    std::string_view key;
    std::size_t region;
  };
  struct Item {
    const Request& request;
    std::vector<std::size_t> at;  // its names
  };
  std::size_t name_at(std::string_view key);
  [[nodiscard]] std::size_t first_name() const { return regions_.size() + (clustered_ ? 0 : 1); }
  void pack(Packer& out, const Item& item) const;

  bool clustered_;
  std::vector<std::string_view> regions_;
  std::vector<Name> names_;
  std::unordered_map<std::string_view, std::size_t> found_;  // by key; not needed for one name
  std::vector<Item> items_;
};

void write_name(Commands& commands, const Layout& layout, std::string_view key);
void write_counter(Commands& commands, const Layout& layout, std::string_view region);

// The last seven of a holder, as they will stand in the name's value.
void pack_claimant(Packer& out, const Request& request);

}  // namespace baton::store::redis
