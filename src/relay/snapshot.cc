#include "relay/snapshot.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace baton::relay {
namespace {

// Reads a number and removes it from the text.
std::optional<Xid> take_number(std::string_view& text) {
  Xid number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

bool Snapshot::shows(Xid xid) const {
  return xid < xmax && !std::binary_search(xip.begin(), xip.end(), xid);
}

Snapshot Snapshot::common(const Snapshot& other) const {
  Snapshot both{.xmin = std::min(xmin, other.xmin), .xmax = std::min(xmax, other.xmax)};
  std::set_union(xip.begin(), xip.end(), other.xip.begin(), other.xip.end(),
                 std::back_inserter(both.xip));
  std::erase_if(both.xip, [&](Xid xid) { return xid >= both.xmax; });
  return both;
}

std::string Snapshot::text() const {
  std::string all = std::to_string(xmin) + ":" + std::to_string(xmax) + ":";
  for (std::size_t i = 0; i < xip.size(); ++i) {
    all += (i == 0 ? "" : ",") + std::to_string(xip[i]);
  }
  return all;
}

std::optional<Snapshot> Snapshot::parse(std::string_view text) {
  const auto xmin = take_number(text);
  if (!xmin || !take(text, ':')) return {};
  const auto xmax = take_number(text);
  if (!xmax || !take(text, ':')) return {};
  Snapshot snapshot{.xmin = *xmin, .xmax = *xmax};
  while (!text.empty()) {
    const auto xid = take_number(text);
    if (!xid || (!text.empty() && !take(text, ','))) return {};
    snapshot.xip.push_back(*xid);
  }
  return std::is_sorted(snapshot.xip.begin(), snapshot.xip.end()) ? std::optional(snapshot)
                                                                  : std::nullopt;
}

}  // namespace baton::relay
