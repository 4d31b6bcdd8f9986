// Any bytes at all may be given as a policy, by a user or by a store. What is accepted must survive
// being printed and stored.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "baton/policy.h"
#include "policy/duration.h"
#include "policy/print_policy.h"

namespace {

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto policy = baton::parse_policy(text)) {
    const auto printed = baton::parse_policy(baton::policy::print_policy(*policy));
    require(printed && *printed == *policy, "what is printed is read again");
    const auto stored = baton::from_stored(baton::to_stored(*policy));
    require(stored && *stored == *policy, "what is stored is read again");
    require(baton::changed_conflicts(*policy, *stored).empty(), "the same does not conflict");
  } else {
    const auto& message = policy.error().message;
    require(message.find('\n') == std::string::npos, "an error is one line");
  }
  if (const auto policy = baton::from_stored(text)) {
    const auto again = baton::from_stored(baton::to_stored(*policy));
    require(again && *again == *policy, "what was stored is stored again");
  }
  if (const auto time = baton::policy::parse_duration(text)) {
    const auto again = baton::policy::parse_duration(baton::policy::print_duration(*time));
    require(again && *again == *time, "a duration is printed as it is read");
  }
  return 0;
}
