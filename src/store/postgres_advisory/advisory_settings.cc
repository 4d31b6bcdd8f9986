#include "store/postgres_advisory/advisory_settings.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/sha256.h"
#include "store/common/url.h"

namespace baton::store::postgres_advisory {
namespace {

constexpr std::string_view kScheme = "postgres-advisory://";
constexpr std::size_t kMostWaiters = 10'000;
constexpr std::size_t kMostIdleSessions = 1'000;

template <typename Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// Takes the option if it is ours.
Result<bool> take_option(std::string_view name, std::string_view value,
                         AdvisorySettings& settings) {
  if (name == "key") {
    std::int64_t key = 0;
    if (!parse(value, key)) {
      return bad_url("key is a whole number of 64 bits, as pg_advisory_lock takes it");
    }
    settings.key = key;
    return true;
  }
  if (name == "baton_max_waiters") {
    if (!parse(value, settings.max_waiters) || settings.max_waiters == 0 ||
        settings.max_waiters > kMostWaiters) {
      return bad_url("baton_max_waiters is a number from 1 to " + std::to_string(kMostWaiters));
    }
    return true;
  }
  if (name == "baton_max_idle_sessions") {
    if (!parse(value, settings.max_idle_sessions) ||
        settings.max_idle_sessions > kMostIdleSessions) {
      return bad_url("baton_max_idle_sessions is a number from 0 to " +
                     std::to_string(kMostIdleSessions));
    }
    return true;
  }
  return false;
}

}  // namespace

Result<AdvisorySettings> parse_advisory_url(std::string_view url) {
  if (!url.starts_with(kScheme)) {
    return bad_url("such a URL starts with postgres-advisory://");
  }
  AdvisorySettings settings;
  const auto plain = without_own_options("postgres://" + std::string(url.substr(kScheme.size())),
                                         [&](std::string_view name, std::string_view value) {
                                           return take_option(name, value, settings);
                                         });
  if (!plain) return plain.error();
  auto server = postgres::parse_settings(*plain);
  if (!server) return server.error();
  settings.server = std::move(*server);
  settings.server.schema = "baton_advisory";
  settings.server.location.replace(0, std::string_view("postgres://").size(), kScheme);
  // A lock outlives every gap in the network that is shorter than its TTL: heartbeats have their
  // own deadlines, so the kernel need not give the connection up.
  settings.sessions = settings.server;
  settings.sessions.libpq.emplace(settings.sessions.libpq.begin(), "tcp_user_timeout", "0");
  return settings;
}

std::int64_t lock_key_of(const AdvisorySettings& settings, std::string_view key) {
  if (settings.key && !key.starts_with("BATON:")) return *settings.key;
  const std::string hash = core::sha256("baton:" + std::string(key));
  std::uint64_t first = 0;
  std::from_chars(hash.data(), hash.data() + 16, first, 16);
  return static_cast<std::int64_t>(first);
}

}  // namespace baton::store::postgres_advisory
