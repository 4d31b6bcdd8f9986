#include "store/redis/settings.h"

#include <algorithm>

#include "store/common/url.h"

namespace baton::store::redis {
namespace {

// Never with a piece of the URL: it may be a piece of the password.
Error not_understood() {
  return bad_url(
      "cannot understand the Redis URL; write redis://user:password@host:6379/0, rediss:// for TLS "
      "or redis+unix:///path/to/redis.sock, with %40 for '@', %2F for '/' and %25 for '%' in a "
      "password");
}

// Braces would move the hash tag, and the rest has a meaning in patterns.
bool is_prefix(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

Result<void> take_option(std::string_view name, std::string_view value, Settings& settings) {
  if (name == "prefix") {
    if (!is_prefix(value)) return bad_url("prefix is 1 to 64 letters, digits, '-', '_' and '.'");
    settings.prefix = value;
    return {};
  }
  if (name == "apply_timeout") {
    const auto span = parse_span(value);
    if (!span || *span < Millis(100) || *span > Millis(60'000)) {
      return bad_url("apply_timeout is a time from 100ms to 1m, such as 5s");
    }
    settings.apply_limit = *span;
    return {};
  }
  if (name == "wait_replicas") {
    const auto number = parse_number(value, 1000);
    if (!number) return bad_url("wait_replicas is a number of replicas");
    settings.wait_replicas = *number;
    return {};
  }
  if (name == "wait_timeout") {
    const auto span = parse_span(value);
    if (!span) return bad_url("wait_timeout is a time such as 500ms");
    settings.wait_timeout = *span;
    return {};
  }
  if (name == "db") {
    const auto number = parse_number(value, 1'000'000);
    if (!number) return bad_url("db is the number of a database");
    settings.database = *number;
    return {};
  }
  if (is_tls_option(name)) {
    if (!settings.uses_tls) return bad_url("the option " + std::string(name) + " needs rediss://");
    return take_tls_option(name, value, settings.tls);
  }
  return bad_url(
      "an unknown option in the Redis URL; there are prefix, db, apply_timeout, wait_replicas, "
      "wait_timeout, and ca, cert, key and verify with rediss://");
}

Result<void> take_all(std::string_view options, Settings& settings) {
  auto taken = take_options(options, [&](std::string_view name, std::string_view value) {
    return take_option(name, value, settings);
  });
  if (!taken) return taken;
  if (settings.wait_replicas > 0 && settings.wait_timeout >= settings.apply_limit) {
    return bad_url("wait_timeout must be below apply_timeout");
  }
  if (settings.tls.cert_file.empty() != settings.tls.key_file.empty()) {
    return bad_url("the options cert and key go together");
  }
  return {};
}

Result<void> take_user(std::string_view text, Settings& settings) {
  auto user = parse_user(text);
  if (!user) return not_understood();
  settings.user = user->name.empty() ? "default" : std::move(user->name);
  settings.password = std::move(user->password);
  settings.authenticates = true;
  return {};
}

std::string location_of(const Settings& settings, bool socket) {
  std::string text = socket ? "redis+unix://" : settings.uses_tls ? "rediss://" : "redis://";
  if (settings.authenticates) text += settings.user + "@";
  if (socket) return text + settings.node.host;
  return text + host_and_port(settings.node.host, settings.node.port) + "/" +
         std::to_string(settings.database);
}

}  // namespace

Result<Settings> parse_settings(std::string_view url) {
  Settings settings;
  settings.uses_tls = url.starts_with("rediss://");
  const bool socket = url.starts_with("redis+unix://");
  if (!socket && !settings.uses_tls && !url.starts_with("redis://")) return not_understood();
  const auto [rest, options] = split_url(url);
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  const std::string_view path = rest.substr(slash);
  if (const auto at = authority.find('@'); at != std::string_view::npos) {
    if (auto taken = take_user(authority.substr(0, at), settings); !taken) return taken.error();
    authority = authority.substr(at + 1);
  }
  // An '@' that comes later was meant to end a password that has a '/' or '@' in it.
  if (authority.find('@') != std::string_view::npos ||
      (!socket && path.find('@') != std::string_view::npos)) {
    return not_understood();
  }
  if (socket) {
    const auto decoded = percent_decoded(path);
    if (!authority.empty() || !decoded || decoded->size() < 2) return not_understood();
    settings.node = {*decoded, 0};
  } else {
    const auto node = parse_host_and_port(authority);
    if (!node) return not_understood();
    settings.node = {node->host.empty() ? "127.0.0.1" : std::string(node->host),
                     node->port.value_or(6379)};
    if (path.size() > 1) {
      const auto number = parse_number(path.substr(1), 1'000'000);
      if (!number) return not_understood();
      settings.database = *number;
    }
  }
  if (auto taken = take_all(options, settings); !taken) return taken.error();
  settings.location = location_of(settings, socket);
  settings.tls.location = settings.location;
  return settings;
}

std::string scrub(std::string_view text, const Settings& settings) {
  std::string line(text.substr(0, 500));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return without_secret(std::move(line), settings.password);
}

}  // namespace baton::store::redis
