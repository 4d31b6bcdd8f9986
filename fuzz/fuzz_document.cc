// A lock document is read as it was written, or refused.

#include <nlohmann/json.hpp>

#include "core/document.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  const std::string_view text = baton::fuzz::text_of(data, size);
  const auto state = baton::core::from_document(text);
  if (!state) {
    promise(state.error().code == baton::Code::bad_store, "what is refused is a bad store");
    return 0;
  }
  const std::string written = baton::core::to_document(*state);
  promise(nlohmann::json::parse(written) == nlohmann::json::parse(text),
          "nothing is dropped, nothing made up");
  const auto again = baton::core::from_document(written);
  promise(again && again->holders == state->holders && again->waiters == state->waiters &&
              again->tombstones == state->tombstones && again->note == state->note,
          "a document survives writing");
  return 0;
}
