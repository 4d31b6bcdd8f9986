#include "store/etcd/layout.h"

namespace baton::store::etcd {

std::optional<Layout::ParsedKey> Layout::parse(std::string_view at) const {
  if (!at.starts_with(names_)) return std::nullopt;
  at.remove_prefix(names_.size());
  const auto zero = at.find('\0');
  ParsedKey place{.key = std::string(at.substr(0, zero)), .grant = {}, .mark = Mark::alive};
  if (zero == std::string_view::npos) return place;
  at.remove_prefix(zero + 1);
  if (at.empty()) return std::nullopt;
  place.mark = static_cast<Mark>(at.back());
  place.grant = parse_grant_id(at.substr(0, at.size() - 1));
  const bool known =
      place.mark == Mark::alive || place.mark == Mark::at_least || place.mark == Mark::tombstone;
  if (!place.grant || !known) return std::nullopt;
  return place;
}

std::string after_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix.empty() ? std::string(1, '\0') : prefix;
}

}  // namespace baton::store::etcd
