#include "partitions/set_name.h"

#include <charconv>

#include "baton/partitions.h"

namespace baton::partitions {
namespace {

LockName with(const SetName& set, std::string_view subject, std::string predicate,
              std::string last) {
  LockName name{.subject = std::string(subject),
                .predicate = std::move(predicate),
                .resources = set.parts,
                .region = set.region};
  name.resources.push_back(std::move(last));
  return name;
}

}  // namespace

LockName SetName::partition(std::size_t number) const {
  return with(*this, kPartitionSubject, "owning", std::to_string(number));
}

LockName SetName::member(const std::string& node) const {
  return with(*this, kMemberSubject, "taking part", node);
}

Result<SetName> parse_set(std::string_view set, std::string_view region) {
  const auto bad = [&](const std::string& why) {
    return Error{.code = Code::bad_name,
                 .message = "the partition set '" + std::string(set) + "': " + why};
  };
  if (set.empty()) return bad("it has no name");
  auto path = parse_path(std::string(kPartitionSubject) + "/" + std::string(set));
  if (!path) return bad(path.error().message);
  SetName name{std::move(path->resources), std::string(region)};
  if (auto ok = validate(name.partition(kMaxPartitions - 1)); !ok) return bad(ok.error().message);
  return name;
}

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return number;
}

}  // namespace baton::partitions

namespace baton {

Result<LockName> partition_lock(std::string_view set, std::size_t number, std::string_view region) {
  auto name = partitions::parse_set(set, region);
  if (!name) return name.error();
  if (number >= kMaxPartitions) {
    return Error{.code = Code::bad_name,
                 .message = "a partition is a number below " + std::to_string(kMaxPartitions)};
  }
  return name->partition(number);
}

}  // namespace baton
