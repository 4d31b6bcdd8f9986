#include "store/etcd/settings.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "store/common/url.h"

namespace baton::store::etcd {
namespace {

constexpr std::size_t kMostEndpoints = 16;
constexpr std::size_t kLongestPrefix = 256;

const char* const kShape =
    "cannot understand the etcd:// URL; write etcd://user:password@host:2379,host2:2379/prefix, or "
    "etcds:// for TLS, with %40 for '@', %2F for '/' and %25 for '%' in a password";

// host, host:port, [address] or [address]:port.
std::optional<std::string> endpoint_of(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == std::string_view::npos || end < 3) return std::nullopt;
    rest.remove_prefix(end + 1);
  } else {
    const auto colon = rest.find(':');
    if (rest.empty() || colon == 0) return std::nullopt;
    const auto host = rest.substr(0, colon);
    const bool plain = std::all_of(host.begin(), host.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    });
    if (!plain) return std::nullopt;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon);
  }
  if (rest.empty()) return std::string(text) + ":2379";
  if (rest[0] != ':') return std::nullopt;
  const auto port = parse_number(rest.substr(1), 65535);
  if (!port || *port == 0) return std::nullopt;
  return std::string(text);
}

Result<void> take_user(std::string_view text, Settings& settings) {
  auto user = parse_user(text);
  if (!user || user->name.empty()) return bad_url(kShape);
  settings.user = std::move(user->name);
  settings.password = std::move(user->password);
  return {};
}

Result<void> take_option(std::string_view name, std::string_view written, bool with_tls,
                         Settings& settings) {
  const auto value = percent_decoded(written);
  if (!value) return bad_url(kShape);
  if (name == "apply_timeout") {
    const auto span = parse_span(*value);
    if (!span || *span < Millis(500) || *span > Millis(60'000)) {
      return bad_url("apply_timeout is a time from 500ms to 60s, such as 5s");
    }
    settings.apply_limit = *span;
    return {};
  }
  std::string* const file = name == "ca"     ? &settings.tls.ca_file
                            : name == "cert" ? &settings.tls.cert_file
                            : name == "key"  ? &settings.tls.key_file
                                             : nullptr;
  if (file == nullptr && name != "verify") {
    return bad_url("unknown option '" + std::string(name.substr(0, 32)) +
                   "' in the store URL; there are ca, cert, key, verify and apply_timeout");
  }
  if (!with_tls) return bad_url("the option " + std::string(name) + " needs etcds://");
  if (file != nullptr) {
    if (value->empty()) return bad_url("the option " + std::string(name) + " names no file");
    *file = *value;
    return {};
  }
  if (*value != "no" && *value != "yes") return bad_url("verify is yes or no");
  settings.tls.verify = *value == "yes";
  return {};
}

Result<void> take_all(std::string_view options, bool with_tls, Settings& settings) {
  auto taken = take_options(options, [&](std::string_view name, std::string_view value) {
    return take_option(name, value, with_tls, settings);
  });
  if (!taken) return taken;
  if (settings.tls.cert_file.empty() != settings.tls.key_file.empty()) {
    return bad_url("the options cert and key go together");
  }
  return {};
}

}  // namespace

Result<Settings> parse_settings(std::string_view url) {
  Settings settings;
  const bool with_tls = url.starts_with("etcds://");
  if (!with_tls && !url.starts_with("etcd://")) {
    return bad_url("an etcd URL starts with etcd:// or etcds://");
  }
  const auto [rest, options] = split_url(url);
  const auto slash = rest.find('/');
  std::string_view hosts = rest.substr(0, slash);
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    const auto prefix = percent_decoded(rest.substr(slash + 1));
    // An '@' that comes only now was meant to end a password that has a '/' in it.
    if (!prefix || prefix->find('@') != std::string::npos) return bad_url(kShape);
    settings.prefix = *prefix;
    while (settings.prefix.ends_with('/')) settings.prefix.pop_back();
    if (settings.prefix.empty() || settings.prefix.size() > kLongestPrefix) return bad_url(kShape);
  }
  if (const auto at = hosts.find('@'); at != std::string_view::npos) {
    if (hosts.find('@', at + 1) != std::string_view::npos) return bad_url(kShape);
    if (auto taken = take_user(hosts.substr(0, at), settings); !taken) return taken.error();
    hosts.remove_prefix(at + 1);
  }
  settings.location = with_tls ? "etcds://" : "etcd://";
  if (!settings.user.empty()) settings.location += settings.user + "@";
  settings.location += std::string(hosts) + "/" + settings.prefix;
  while (true) {
    const auto comma = hosts.find(',');
    const auto endpoint = endpoint_of(hosts.substr(0, comma));
    if (!endpoint || settings.endpoints.size() == kMostEndpoints) return bad_url(kShape);
    settings.endpoints.push_back((with_tls ? "https://" : "http://") + *endpoint);
    if (comma == std::string_view::npos) break;
    hosts.remove_prefix(comma + 1);
  }
  // Last, and not a word of them where an '@' shows that they may be the rest of a password.
  if (auto taken = take_all(options, with_tls, settings); !taken) {
    return options.find('@') == std::string_view::npos ? taken.error() : bad_url(kShape);
  }
  return settings;
}

}  // namespace baton::store::etcd
