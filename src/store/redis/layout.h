#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::store::redis {

// Where things are. The braces are Redis Cluster's hash tag: all of a region is in one slot.
//   {baton:DEFAULT}:page:7     the name DEFAULT:page:7
//   {baton:DEFAULT}#last       the region's last token
//   {baton:BATON}#version      the version of the schema, apart from its text
//   {baton:BATON}#floor        what tokens of a region without a counter start above
//   baton:wake:CHANNEL         pub/sub
class Layout {
 public:
  explicit Layout(const std::string& prefix)
      : start_("{" + prefix + ":"),
        version_(start_ + "BATON}#version"),
        floor_(start_ + "BATON}#floor"),
        channels_(prefix + ":wake:") {}

  [[nodiscard]] static std::string_view region_of(std::string_view key) {
    return key.substr(0, key.find(':'));
  }

  [[nodiscard]] std::string name(std::string_view key) const {
    const std::string_view region = region_of(key);
    std::string made = start_;
    made += region;
    made += '}';
    made += key.substr(region.size());
    return made;
  }
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const std::string& floor() const { return floor_; }
  [[nodiscard]] const std::string& channels() const { return channels_; }

  // The part of a key before the region.
  [[nodiscard]] const std::string& start() const { return start_; }

  // For SCAN: everything ours whose key starts so. An escaped ':' ends a region, so a part of one
  // cannot be asked for.
  [[nodiscard]] std::string pattern(std::string_view key_prefix) const;

  // For SCAN, which finds names that end so as well: only those without a ':' are counters.
  [[nodiscard]] std::string counters_pattern() const { return start_ + "*}#last"; }
  [[nodiscard]] bool is_counter(std::string_view found) const {
    return found.find(':', start_.size()) == std::string_view::npos;
  }

  // The key of a name from what SCAN found; nothing for a counter or somebody else's.
  [[nodiscard]] std::optional<std::string> key_in(std::string_view redis_key) const;

 private:
  std::string start_;
  std::string version_;
  std::string floor_;
  std::string channels_;
};

// The slot of a key in a cluster.
[[nodiscard]] int slot_of(std::string_view redis_key);

}  // namespace baton::store::redis
