#include "store/redis/fence.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

#include "core/fence.h"
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
      // The keys of the fence, then as many of the locks, or none; the modes and tokens in pairs.
      "local asks, count = {}, (#ARGV - 1) / 2\n"
      "for i = 1, count do asks[i] = {KEYS[i], ARGV[2 * i], ARGV[2 * i + 1], KEYS[count + i]} end\n"
      "return baton_fence_all(asks, ARGV[1] == 'look')";
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
  } else if (starts("CROSSSLOT")) {
    error.code = Code::unsupported;
    error.message =
        "in a cluster the names of this lease are in different slots: fence in a script of your "
        "own, with keys of one hash tag (docs/stores/redis.md)";
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

std::string key_in_fence(const FenceToken& token) { return std::string(kKeyStart) + token.key; }

// Looks at the locks too where it can: under the default prefix, and not in another slot.
Answered run(redisContext* connection, std::span<const FenceToken> tokens, bool only_look) {
  std::vector<std::string> fences;
  std::vector<std::string> locks;
  std::vector<std::string> values{only_look ? "look" : "record"};
  for (const FenceToken& token : tokens) {
    fences.push_back(key_in_fence(token));
    locks.push_back(store::redis::Layout("baton").name(token.key));
    values.emplace_back(short_name(token.mode));
    values.push_back(std::to_string(token.token));
  }
  const auto call = [&](std::vector<std::string> keys) {
    std::vector<std::string> words{"EVAL", script(), std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), values.begin(), values.end());
    return ask(connection, words);
  };
  std::vector<std::string> both = fences;
  both.insert(both.end(), locks.begin(), locks.end());
  Answered reply = call(std::move(both));
  const bool elsewhere = reply != nullptr && reply->type == REDIS_REPLY_ERROR &&
                         std::string_view(reply->str, reply->len).starts_with("CROSSSLOT");
  return elsewhere ? call(std::move(fences)) : std::move(reply);
}

Result<void> judge(const redisContext* connection, const Answered& reply,
                   std::span<const FenceToken> tokens) {
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
      return Error{
          .code = Code::fenced,
          .message = "fenced: token " + std::to_string(tokens[0].token) + " of " + tokens[0].key +
                     (tokens.size() == 1 ? "" : ", or one of the other names of its lease,") +
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
// second look finds nothing to record. A refused writer begins no transaction of this fence, so
// the watch goes: it would break another one. After an error that passes it stays: UNWATCH would
// also drop the watches of earlier fences, whose transaction may go on.
Result<void> fence(redisContext* connection, std::span<const FenceToken> tokens) {
  auto fine = fence_alone(connection, tokens);
  if (!fine) return fine;
  std::vector<std::string> watch{"WATCH"};
  for (const FenceToken& token : tokens) watch.push_back(key_in_fence(token));
  const Answered watched = ask(connection, watch);
  if (watched == nullptr) return unreachable(connection);
  if (watched->type == REDIS_REPLY_ERROR) return error_of({watched->str, watched->len});
  fine = judge(connection, run(connection, tokens, true), tokens);
  if (!fine && fine.error().code == Code::fenced) ask(connection, {"UNWATCH"});
  return fine;
}

Result<void> fence_alone(redisContext* connection, std::span<const FenceToken> tokens) {
  const auto ordered = core::in_fence_order(tokens);
  if (!ordered) return ordered.error();
  return judge(connection, run(connection, *ordered, false), *ordered);
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

Result<void> look_at_fence(redisContext* connection, std::span<const FenceToken> tokens) {
  const auto ordered = core::in_fence_order(tokens);
  if (!ordered) return ordered.error();
  return judge(connection, run(connection, *ordered, true), *ordered);
}

}  // namespace baton::store::redis
