// Any bytes at all may be given as a policy, by a user or by a store. What is accepted must survive
// being printed and stored.

#include <cstdint>
#include <string>
#include <string_view>

#include "baton/policy.h"
#include "fuzz.h"
#include "policy/duration.h"
#include "policy/print_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  const std::string_view text = baton::fuzz::text_of(data, size);
  if (const auto policy = baton::parse_policy(text)) {
    const auto printed = baton::parse_policy(baton::policy::print_policy(*policy));
    promise(printed && *printed == *policy, "what is printed is read again");
    const auto stored = baton::from_stored(baton::to_stored(*policy));
    promise(stored && *stored == *policy, "what is stored is read again");
    promise(baton::changed_conflicts(*policy, *stored).empty(), "the same does not conflict");
  } else {
    const auto& message = policy.error().message;
    promise(message.find('\n') == std::string::npos, "an error is one line");
  }
  if (const auto policy = baton::from_stored(text)) {
    const auto again = baton::from_stored(baton::to_stored(*policy));
    promise(again && *again == *policy, "what was stored is stored again");
  }
  if (const auto time = baton::policy::parse_duration(text)) {
    const auto again = baton::policy::parse_duration(baton::policy::print_duration(*time));
    promise(again && *again == *time, "a duration is printed as it is read");
  }
  return 0;
}
