#include "store/redis/redis_error.h"

#include <algorithm>
#include <initializer_list>

namespace baton::store::redis {
namespace {

bool has_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

}  // namespace

// Redis 7 puts the word first; older ones have it inside what they say about a script.
Error error_for(std::string_view text, const Settings& settings) {
  const std::string said = settings.location + ": " + scrub(text, settings);
  if (has_one_of(text, {"NOAUTH", "WRONGPASS", "DENIED Redis"})) {
    return Error{.code = Code::unauthorized, .message = said};
  }
  if (has_one_of(text, {"NOPERM"})) {
    return Error{.code = Code::unauthorized,
                 .message = said + "; docs/stores/redis.md lists the rights that Baton needs"};
  }
  if (has_one_of(text, {"can't run this command", "can't access at least one of the keys"})) {
    return Error{.code = Code::unauthorized,
                 .message = said + "; docs/stores/redis.md lists the rights that Baton needs",
                 .in_doubt = true};
  }
  if (has_one_of(text, {"OOM command not allowed"})) {
    return Error{.code = Code::unavailable,
                 .message = settings.location + ": the server's memory is full (maxmemory)",
                 .retryable = true};
  }
  if (has_one_of(text, {"READONLY"})) {
    return Error{.code = Code::unavailable,
                 .message = settings.location + ": the server is a read-only replica",
                 .retryable = true};
  }
  // None of these lets a script write anything.
  if (has_one_of(text, {"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MISCONF",
                        "NOREPLICAS", "max number of clients", "NOSCRIPT", "MOVED", "ASK "})) {
    return Error{.code = Code::unavailable, .message = said, .retryable = true};
  }
  return Error{.code = Code::bad_store, .message = said, .in_doubt = true};
}

}  // namespace baton::store::redis
