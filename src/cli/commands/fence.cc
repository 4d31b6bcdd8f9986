// baton fence: check, rebase, install.

#include <charconv>
#include <cstdlib>

#include <fmt/core.h>

#include "baton/store_admin.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/fence_database.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"
#include "cli/remedy.h"
#include "policy/apply_policy.h"

namespace baton::cli {
namespace {

constexpr Millis kAskLimit{10'000};

Result<std::unique_ptr<FenceDatabase>> open_database(const std::string& url) {
  if (auto ok = check_password(url); !ok) return ok.error();
  const auto scheme = url.substr(0, url.find(':'));
#ifdef BATON_HAS_STORE_SQLITE
  if (scheme == "sqlite") return open_sqlite_fence(url);
#endif
#ifdef BATON_HAS_STORE_POSTGRES
  if (scheme == "postgres" || scheme == "postgresql") return open_postgres_fence(url);
#endif
#ifdef BATON_HAS_STORE_REDIS
  if (scheme == "redis" || scheme == "redis+unix" || scheme == "rediss") {
    return open_redis_fence(url);
  }
#endif
  return Error{
      .code = Code::bad_url,
      .message = "--database: write sqlite:PATH, postgres://user@host/database or redis://host"};
}

Result<Token> parse_token(const std::string& text) {
  Token token = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (problem != std::errc{} || end != text.data() + text.size() || token == 0) {
    return bad_request("'" + text + "' is not a token; it is a number above zero, as $BATON_TOKEN");
  }
  return token;
}

// Whether the predicate is part of a name's key is for the policy to say, which is in the store.
Result<FenceToken> claim_of(Context& context, const FenceArguments& arguments) {
  auto token = parse_token(arguments.token);
  if (!token) return token.error();
  auto mode = parse_mode_argument(arguments.mode);
  if (!mode) return mode.error();
  if (arguments.key) {
    auto name = parse_key(arguments.name);
    if (!name) return name.error();
    return FenceToken{arguments.name, mode->value_or(Mode::X), *token};
  }
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto what = parse_name(arguments.name, arguments.predicate, settings->region);
  if (!what) return what.error();
  auto store = open_locks_store(context, *settings);
  if (!store) return store.error();
  auto policy = policy::read_policy(**store, BootClock::now() + kAskLimit);
  if (!policy) return policy.error();
  return FenceToken{key_of(*policy, what->name), mode->value_or(what->mode.value_or(Mode::X)),
                    *token};
}

// One name and its token, or all that the lease of the `baton run` around us holds.
Result<std::vector<FenceToken>> claims_of(Context& context, const FenceArguments& arguments) {
  if (!arguments.name.empty()) {
    if (arguments.token.empty()) return bad_request("give the TOKEN too, as in $BATON_TOKEN");
    auto one = claim_of(context, arguments);
    if (!one) return one.error();
    return std::vector<FenceToken>{std::move(*one)};
  }
  const char* const lease = std::getenv("BATON_FENCE");
  if (lease == nullptr) {
    return bad_request("give NAME and TOKEN, or the lease in $BATON_FENCE, as baton run does");
  }
  return parse_fence_tokens(lease);
}

void report_check(Context& context, const std::vector<FenceToken>& claims, bool accepted) {
  const auto& [key, mode, token] = claims.front();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("key", key).field("token", token).field("accepted", accepted);
    json.end_object();
    context.out.line(json.text());
  } else {
    const std::string others =
        claims.size() == 1 ? "" : fmt::format(", with {} more of its lease,", claims.size() - 1);
    context.out.line(printable(fmt::format(
        "{}: token {}{} {}", key, token, others,
        accepted ? "would be accepted"
                 : "would be refused: a newer holder has been there (if the locks were restored "
                   "or moved, see baton fence rebase)")));
  }
}

}  // namespace

Result<int> fence_check(Context& context, const FenceArguments& arguments) {
  auto claims = claims_of(context, arguments);
  if (!claims) return claims.error();
  auto database = open_database(arguments.database);
  if (!database) return database.error();
  const auto verdict = (*database)->check(*claims);
  if (!verdict && verdict.error().code != Code::fenced) return verdict.error();
  report_check(context, *claims, verdict.has_value());
  return verdict ? exit_code::ok : exit_code::fenced;
}

Result<int> fence_rebase(Context& context, const FenceArguments& arguments) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto database = open_database(arguments.database);
  if (!database) return database.error();
  const auto highest = (*database)->highest();
  if (!highest) return highest.error();
  auto admin = open_locks_admin(context, *settings);
  if (!admin) return admin.error();
  if (auto ok = (*admin)->raise_tokens(*highest, BootClock::now() + kAskLimit); !ok) {
    return ok.error();
  }
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("floor", *highest).end_object();
    context.out.line(json.text());
  } else {
    context.out.line(
        fmt::format("every new token is above {}, the highest the fence has seen", *highest));
  }
  return exit_code::ok;
}

Result<int> fence_install(Context& context, const FenceArguments& arguments) {
  auto database = open_database(arguments.database);
  if (!database) return database.error();
  if (auto ok = (*database)->install(); !ok) return ok.error();
  context.out.installed("the fence", arguments.database);
  return exit_code::ok;
}

}  // namespace baton::cli
