// A Lease that anybody may have written, and the document in its annotation.

#include "fuzz.h"
#include "store/kubernetes/lease_object.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton::store::kubernetes;
  using baton::fuzz::promise;
  const std::string_view text = baton::fuzz::text_of(data, size);
  const ClockReading now{.here = std::chrono::hours(1),
                         .server = std::chrono::hours(24 * 365 * 56)};
  const auto read = [&](std::string_view document) {
    Timings timings;
    const auto state = parse_document(document, 7, {}, now, timings);
    if (!state) return;
    Timings next;
    const std::string written = print_document(*state, timings, 7, now, next);
    Timings again;
    promise(parse_document(written, 8, timings, now, again).has_value(),
            "what is written can be read");
  };
  read(text);
  (void)new_wakes(text, "");
  if (const auto lease = parse_lease(text)) {
    read(lease->document);
    (void)new_wakes(lease->wake, text);
    (void)print_lease(lease->key, lease->document, lease->wake, {}, &*lease);
  }
  return 0;
}
