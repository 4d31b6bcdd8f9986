#include "eventlog/complete_append.h"

#include "core/bad_request.h"

namespace baton::eventlog {
namespace {

// The server takes no more than 1 GiB in one statement.
constexpr std::size_t kMaxBytesAtOnce = std::size_t{256} << 20;

}  // namespace

Result<void> CompleteAppend::fill(std::string_view stream, std::span<const Event> from) {
  if (from.empty()) return bad_request("no events were given to append");
  if (from.size() > kMaxAppend) {
    return bad_request("at most " + std::to_string(kMaxAppend) + " events can be appended at once");
  }
  std::size_t bytes = 0;
  events.reserve(from.size());
  for (const Event& event : from) {
    if (!event.aggregate.empty() && event.aggregate != stream) {
      return bad_request("an event of another aggregate than its stream; leave `aggregate` empty");
    }
    events.push_back(event);
    events.back().aggregate = stream;
    auto one = outbox::complete(events.back(), {});
    if (!one) return one.error();
    bytes += event.payload.size() + one->headers.size();
    complete.push_back(std::move(*one));
  }
  if (bytes <= kMaxBytesAtOnce) return {};
  return bad_request("these events have more than " + std::to_string(kMaxBytesAtOnce) +
                     " bytes; append them in several calls");
}

Error version_conflict(std::string_view stream, std::int64_t version, std::int64_t expected) {
  return {.code = Code::superseded,
          .message = "the stream " + std::string(stream) + " is at version " +
                     std::to_string(version) + ", not " + std::to_string(expected)};
}

Result<void> check_limit(const ReadStream& what) {
  if (what.limit >= 1 && what.limit <= kMaxAppend) return {};
  return bad_request("the limit of a read is 1 to " + std::to_string(kMaxAppend));
}

}  // namespace baton::eventlog
