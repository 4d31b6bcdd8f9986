#include "store/etcd/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace baton::store::etcd {
namespace {

constexpr std::size_t kMostEndpoints = 16;
constexpr std::size_t kLongestPrefix = 256;

Error bad_url(std::string message) {
  return Error{.code = Code::bad_url, .message = std::move(message)};
}

const char* const kShape =
    "cannot understand the etcd:// URL; write etcd://user:password@host:2379,host2:2379/prefix, or "
    "etcds:// for TLS, with %40 for '@', %2F for '/' and %25 for '%' in a password";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

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
  int port = 0;
  const auto [end, problem] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), port);
  if (problem != std::errc{} || end != rest.data() + rest.size() || port < 1 || port > 65535) {
    return std::nullopt;
  }
  return std::string(text);
}

Result<void> take_user(std::string_view text, Settings& settings) {
  const auto colon = text.find(':');
  const auto user = decoded(text.substr(0, colon));
  const auto password = decoded(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (!user || user->empty() || !password) return bad_url(kShape);
  settings.user = *user;
  settings.password = *password;
  return {};
}

std::optional<Millis> parse_span(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || number <= 0 || number > 1'000'000) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "ms") return Millis(number);
  if (unit == "s") return Millis(number * 1000);
  return std::nullopt;
}

Result<void> take_option(std::string_view option, bool with_tls, Settings& settings) {
  const auto equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const auto value = decoded(equals == std::string_view::npos ? "" : option.substr(equals + 1));
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

Result<void> take_options(std::string_view text, bool with_tls, Settings& settings) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    if (end > 0) {
      if (auto taken = take_option(text.substr(0, end), with_tls, settings); !taken) return taken;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
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
  std::string_view rest = url.substr(url.find("://") + 3);
  const auto question = rest.find('?');
  const std::string_view options =
      question == std::string_view::npos ? std::string_view{} : rest.substr(question + 1);
  rest = rest.substr(0, question);
  const auto slash = rest.find('/');
  std::string_view hosts = rest.substr(0, slash);
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    const auto prefix = decoded(rest.substr(slash + 1));
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
  if (auto taken = take_options(options, with_tls, settings); !taken) return taken.error();
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
  return settings;
}

}  // namespace baton::store::etcd
