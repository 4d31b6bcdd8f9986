// Whatever stands in a stored document, every request on it is answered, and leaves a document that
// can be read again. Input: a line with a byte a request, then the document.

#include <chrono>

#include "core/apply.h"
#include "core/document.h"
#include "fuzz.h"

namespace baton::fuzz {
namespace {

const std::string kKey = "DEFAULT:job";

// Verb, mode, grant and whether it waits, from one byte; grants are the document's own or new ones.
Request request_of(std::uint8_t byte, const core::NameState& state) {
  Request request;
  request.verb = static_cast<Verb>(byte % 8);
  request.targets = {{kKey, static_cast<Mode>(byte % 6)}};
  request.grant = {1, std::uint64_t{byte} / 64 + 1};
  if (byte % 3 == 0 && !state.holders.empty()) request.grant = state.holders.front().grant;
  if (byte % 3 == 1 && !state.waiters.empty()) request.grant = state.waiters.front().grant;
  request.owner = "node";
  request.channel = "process";
  request.ttl = Millis(10'000);
  request.claim_within = Millis(1'000);
  request.queue_ttl = Millis(byte % 5 == 0 ? 0 : 60'000);
  request.tombstone_ttl = Millis(request.verb == Verb::cancel && byte % 2 == 1 ? 5'000 : 0);
  return request;
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  const std::string_view text = fuzz::text_of(data, size);
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  auto state = core::from_document(text.substr(end + 1));
  if (!state) return 0;
  core::LockTable table;
  table.names[fuzz::kKey] = std::move(*state);
  core::StoreTime now{std::chrono::hours(24 * 365 * 56)};
  for (const char byte : text.substr(0, std::min<std::size_t>(end, 32))) {
    const core::NameState before = table.names[fuzz::kKey];
    core::Effects effects;
    const Reply reply =
        core::apply(table, fuzz::request_of(static_cast<std::uint8_t>(byte), before), now, effects);
    fuzz::promise(reply.outcome != Outcome::granted || reply.tokens.size() == 1,
                  "a grant has a token");
    now += Millis(static_cast<std::uint8_t>(byte) * 100);
    const auto again = core::from_document(core::to_document(table.names[fuzz::kKey]));
    fuzz::promise(again.has_value(), "what a request leaves can be read");
    (void)core::describe(fuzz::kKey, *again, now, 8);
  }
  return 0;
}
