#include "core/percent.h"
#include "fuzz.h"
#include "http/target.h"

namespace baton::fuzz {
namespace {

// A target put together again from its decoded parts.
std::string print(const http::RequestTarget& target) {
  std::string text;
  for (const auto& segment : target.segments) text += "/" + core::percent_encoded(segment);
  if (text.empty()) text = "/";
  char before = '?';
  for (const auto& [name, value] : target.query) {
    text += before + core::percent_encoded(name) + "=" + core::percent_encoded(value);
    before = '&';
  }
  return text;
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  const auto target = baton::http::parse_target(baton::fuzz::text_of(data, size));
  if (!target) return 0;
  promise(target->segments.size() <= baton::http::kMaxSegments, "a path has few parts");
  promise(target->query.size() <= baton::http::kMaxQueryPairs, "a query has few parts");
  const auto again = baton::http::parse_target(baton::fuzz::print(*target));
  promise(again.has_value(), "what was read can be written");
  promise(again->segments == target->segments && again->query == target->query,
          "and is the same when read again");
  return 0;
}
