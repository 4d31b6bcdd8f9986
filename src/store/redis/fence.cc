#include "store/redis/fence.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

#include "store/redis/fence.lua.h"
#include "store/redis/layout.h"

namespace baton {
namespace {

constexpr std::string_view kKeyStart = "baton_fence:";

struct Free {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Answered = std::unique_ptr<redisReply, Free>;

const std::string& script() {
  static const std::string text =
      std::string(redis_fence_script()) +
      "return baton_fence(KEYS[1], ARGV[1], ARGV[2], KEYS[2], ARGV[3] == 'look')";
  return text;
}

Answered ask(redisContext* connection, const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  return Answered(static_cast<redisReply*>(
      redisCommandArgv(connection, static_cast<int>(words.size()), texts.data(), sizes.data())));
}

Error unreachable(const redisContext* connection) {
  return Error{.code = Code::unavailable,
               .message = std::string("the fence in Redis: ") + connection->errstr,
               .retryable = true};
}

Error error_of(std::string_view text) {
  const auto starts = [&](std::string_view word) { return text.starts_with(word); };
  Error error{.code = Code::bad_store, .message = "the fence in Redis: " + std::string(text)};
  if (text.find("unknown lock mode") != std::string_view::npos ||
      text.find("above zero") != std::string_view::npos) {
    error.code = Code::bad_request;
  } else if (starts("NOAUTH") || starts("NOPERM") ||
             text.find("can't run this command") != std::string_view::npos) {
    error.code = Code::unauthorized;
  } else if (starts("LOADING") || starts("READONLY") || starts("OOM") || starts("MISCONF") ||
             starts("BUSY")) {
    error.code = Code::unavailable;
    error.retryable = true;
  }
  return error;
}

// Looks at the lock too where it can: under the default prefix, and not in another slot.
Answered run(redisContext* connection, std::string_view key, Mode mode, Token token,
             bool only_look) {
  const std::string own = std::string(kKeyStart) + std::string(key);
  const std::string lock = store::redis::Layout("baton").name(key);
  const std::string word(short_name(mode));
  const std::string number = std::to_string(token);
  const std::string how = only_look ? "look" : "record";
  Answered reply = ask(connection, {"EVAL", script(), "2", own, lock, word, number, how});
  const bool elsewhere = reply != nullptr && reply->type == REDIS_REPLY_ERROR &&
                         std::string_view(reply->str, reply->len).starts_with("CROSSSLOT");
  return elsewhere ? ask(connection, {"EVAL", script(), "1", own, word, number, how})
                   : std::move(reply);
}

Result<void> judge(const redisContext* connection, const Answered& reply, std::string_view key,
                   Token token) {
  if (reply == nullptr) return unreachable(connection);
  const std::string_view text =
      reply->str == nullptr ? std::string_view() : std::string_view(reply->str, reply->len);
  switch (reply->type) {
    case REDIS_REPLY_NIL: return {};
    case REDIS_REPLY_ERROR: return error_of(text);
    case REDIS_REPLY_STATUS:
      return Error{.code = Code::bad_request,
                   .message = "a fence comes before MULTI: it must be answered at once"};
    default:
      return Error{.code = Code::fenced,
                   .message = "fenced: token " + std::to_string(token) + " of " + std::string(key) +
                              " is older than " + std::string(text)};
  }
}

}  // namespace

std::string_view redis_fence_script() { return embedded::store_redis::fence_lua; }

Result<void> install_fence(redisContext* connection) {
  const Answered reply = ask(connection, {"SCRIPT", "LOAD", script()});
  if (reply == nullptr) return unreachable(connection);
  if (reply->type == REDIS_REPLY_ERROR) return error_of({reply->str, reply->len});
  return {};
}

// Recorded first: to write to a key that is watched would break the transaction that follows. The
// second look finds nothing to record. Whoever is refused begins no transaction of this fence, so
// the watch goes: it would break another one. After an error that passes it stays: UNWATCH would
// also drop the watches of earlier fences, whose transaction may go on.
Result<void> fence(redisContext* connection, std::string_view key, Mode mode, Token token) {
  if (auto fine = judge(connection, run(connection, key, mode, token, false), key, token); !fine) {
    return fine;
  }
  const Answered watched = ask(connection, {"WATCH", std::string(kKeyStart) + std::string(key)});
  if (watched == nullptr) return unreachable(connection);
  if (watched->type == REDIS_REPLY_ERROR) return error_of({watched->str, watched->len});
  auto fine = judge(connection, run(connection, key, mode, token, true), key, token);
  if (!fine && fine.error().code == Code::fenced) ask(connection, {"UNWATCH"});
  return fine;
}

Result<Token> highest_fenced(redisContext* connection) {
  Token highest = 0;
  std::string cursor = "0";
  do {
    const Answered page =
        ask(connection, {"SCAN", cursor, "MATCH", std::string(kKeyStart) + "*", "COUNT", "1000"});
    if (page == nullptr) return unreachable(connection);
    if (page->type != REDIS_REPLY_ARRAY || page->elements != 2) {
      return error_of(page->str == nullptr ? "" : page->str);
    }
    cursor.assign(page->element[0]->str, page->element[0]->len);
    const redisReply& keys = *page->element[1];
    for (std::size_t i = 0; i < keys.elements; ++i) {
      const redisReply& key = *keys.element[i];
      const Answered tokens = ask(connection, {"HVALS", std::string(key.str, key.len)});
      if (tokens == nullptr) return unreachable(connection);
      for (std::size_t j = 0; j < tokens->elements; ++j) {
        const redisReply& text = *tokens->element[j];
        Token token = 0;
        std::from_chars(text.str, text.str + text.len, token);
        highest = std::max(highest, token);
      }
    }
  } while (cursor != "0");
  return highest;
}

}  // namespace baton

namespace baton::store::redis {

Result<void> look_at_fence(redisContext* connection, std::string_view key, Mode mode, Token token) {
  return judge(connection, run(connection, key, mode, token, true), key, token);
}

}  // namespace baton::store::redis
