#include "apps/gateway/signal.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  using namespace baton::gateway;
  const auto signal = parse_signal(baton::fuzz::text_of(data, size));
  if (!signal) {
    promise(signal.error().code == baton::Code::bad_request, "what is refused is a bad request");
    return 0;
  }
  promise(static_cast<bool>(validate(signal_lock(signal->fingerprint))), "a signal can be locked");
  promise(static_cast<bool>(validate(target_lock(signal->target))), "its target can be locked");
  promise(parse_target(signal->target.text()) == signal->target, "a target survives printing");
  const auto again = parse_signal(signal->document);
  promise(again && again->fingerprint == signal->fingerprint && again->document == signal->document,
          "what is kept of a signal is a signal, the same");
  return 0;
}
