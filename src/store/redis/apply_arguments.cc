#include "store/redis/apply_arguments.h"

#include <algorithm>

#include "core/apply.h"
#include "store/redis/msgpack.h"

namespace baton::store::redis {
namespace {

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
  if (request.targets[0].key == core::kSchemaKey) {
    out.flag(false);
  } else {
    out.text(std::to_string(request.schema_version));
  }
}

}  // namespace

void write_name(Commands& commands, const Layout& layout, std::string_view key) {
  const std::string_view region = Layout::region_of(key);
  commands.joined({layout.start(), region, "}", key.substr(region.size())});
}

void write_counter(Commands& commands, const Layout& layout, std::string_view region) {
  commands.joined({layout.start(), region, "}#last"});
}

void pack_claimant(Packer& out, const Request& request) {
  pack_ordinal(out, request.if_ordinal_below);
  pack_change(out, request.change);
  out.text(request.predicate).text(request.owner).text(request.channel);
  if (request.metadata.empty()) {
    out.text("");
    return;
  }
  std::string bytes;
  Packer metadata(bytes);
  for (const auto& [name, value] : request.metadata) metadata.text(name).text(value);
  out.text(bytes);
}

ApplyArguments::ApplyArguments(std::span<const Request> batch,
                               const std::vector<std::size_t>& places, bool clustered)
    : clustered_(clustered) {
  items_.reserve(places.size());
  for (const std::size_t place : places) {
    Item& item = items_.emplace_back(Item{batch[place], {}});
    for (const Target& target : item.request.targets) item.at.push_back(name_at(target.key));
  }
}

std::size_t ApplyArguments::name_at(std::string_view key) {
  if (names_.size() == 1 && found_.empty()) found_.emplace(names_[0].key, 0);
  if (const auto it = found_.find(key); it != found_.end()) return it->second;
  const std::string_view region = Layout::region_of(key);
  const auto known = std::find(regions_.begin(), regions_.end(), region);
  names_.push_back({key, static_cast<std::size_t>(known - regions_.begin())});
  if (known == regions_.end()) regions_.push_back(region);
  if (names_.size() > 1) found_.emplace(key, names_.size() - 1);
  return names_.size() - 1;
}

void ApplyArguments::write_keys(Commands& commands, const Layout& layout) const {
  if (!clustered_) commands.word(layout.version());
  for (const auto region : regions_) write_counter(commands, layout, region);
  for (const auto& name : names_) write_name(commands, layout, name.key);
}

// As verbs_more.lua reads it.
void ApplyArguments::pack(Packer& out, const Item& item) const {
  const Request& request = item.request;
  const std::vector<std::size_t>& at = item.at;
  static constexpr std::size_t kSizes[] = {11, 6, 6, 6, 7, 5, 5, 3};
  out.array(kSizes[static_cast<std::size_t>(request.verb)]);
  out.number(static_cast<std::int64_t>(request.verb)).grant(request.grant);
  const bool single = at.size() == 1;
  const auto each = [&](auto one) {
    if (!single) out.array(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) out.number(one(i));
  };
  each([&](std::size_t i) { return static_cast<std::int64_t>(first_name() + at[i] + 1); });
  const auto modes = [&] {
    each([&](std::size_t i) { return static_cast<std::int64_t>(request.targets[i].mode); });
  };
  switch (request.verb) {
    case Verb::acquire:
      modes();
      pack_version(out, request);
      out.number(request.queue_ttl.count()).number(request.claim_within.count());
      out.number(request.ttl.count()).number(request.at_least_for.count());
      out.flag(single && !request.if_ordinal_below && request.change.empty());
      {
        std::string bytes;
        Packer claimant(bytes);
        pack_claimant(claimant, request);
        out.text(bytes);
      }
      break;
    case Verb::claim:
    case Verb::convert:
      modes();
      pack_version(out, request);
      out.number(request.queue_ttl.count());
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
    case Verb::cancel: out.number(request.tombstone_ttl.count()).flag(request.converting); break;
    case Verb::break_: out.text(request.reason).flag(request.immediately); break;
    case Verb::get: break;
  }
}

void ApplyArguments::pack(Packer& out) const {
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
  out.array(items_.size());
  for (const Item& item : items_) pack(out, item);
}

}  // namespace baton::store::redis
