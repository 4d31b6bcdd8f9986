#include "broker/rabbitmq/settings.h"

#include "broker/common/message.h"
#include "store/common/url.h"

namespace baton::broker::rabbitmq {
namespace {

using store::bad_url;
using store::percent_decoded;

// Never with a piece of the URL: it may be a piece of the password.
Error not_understood() {
  return bad_url(
      "cannot understand the RabbitMQ URL; write rabbitmq://user:password@host:5672/vhost, or "
      "rabbitmqs:// for TLS, with %40 for '@', %2F for '/' and %25 for '%' in a password or vhost");
}

Result<void> take_option(std::string_view name, std::string_view value, Settings& settings) {
  if (name == "heartbeat") {
    const auto span = store::parse_span(value);
    if (!span || *span < Millis(1'000) || *span > Millis(600'000) || span->count() % 1000 != 0) {
      return bad_url("heartbeat is a time of whole seconds from 1s to 10m, such as 30s");
    }
    settings.heartbeat = *span;
    return {};
  }
  if (is_tls_option(name)) {
    if (!settings.uses_tls) {
      return bad_url("the option " + std::string(name) + " needs rabbitmqs://");
    }
    return take_tls_option(name, value, settings.tls);
  }
  return bad_url(
      "an unknown option in the RabbitMQ URL; there are heartbeat, and ca, cert, key and verify "
      "with rabbitmqs://");
}

std::string location_of(const Settings& settings) {
  return std::string(settings.uses_tls ? "rabbitmqs://" : "rabbitmq://") +
         store::percent_encoded(settings.user) + "@" +
         store::host_and_port(settings.host, settings.port) + "/" +
         store::percent_encoded(settings.vhost);
}

}  // namespace

Result<Settings> parse_settings(std::string_view url) {
  Settings settings;
  settings.uses_tls = url.starts_with("rabbitmqs://");
  if (!settings.uses_tls && !url.starts_with("rabbitmq://")) return not_understood();
  const auto [rest, options] = store::split_url(url);
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  const std::string_view path = rest.substr(slash);
  // An '@' or '/' that comes later was meant to be a part of the password.
  if (const auto at = authority.find('@'); at != std::string_view::npos) {
    auto user = store::parse_user(authority.substr(0, at));
    if (!user || user->name.empty()) return not_understood();
    settings.user = std::move(user->name);
    settings.password = std::move(user->password);
    authority = authority.substr(at + 1);
  }
  if (authority.find('@') != std::string_view::npos || path.find('@') != std::string_view::npos) {
    return not_understood();
  }
  const auto node = store::parse_host_and_port(authority);
  if (!node) return not_understood();
  if (!node->host.empty()) settings.host = node->host;
  settings.port = node->port.value_or(settings.uses_tls ? 5671 : 5672);
  if (path.size() > 1) {
    const auto vhost = percent_decoded(path.substr(1));
    if (!vhost || path.find('/', 1) != std::string_view::npos) return not_understood();
    if (vhost->size() > kMaxShortText) return bad_url("a vhost has at most 255 bytes");
    settings.vhost = *vhost;
  }
  auto taken = store::take_options(options, [&](std::string_view name, std::string_view value) {
    return take_option(name, value, settings);
  });
  if (!taken) return taken.error();
  if (settings.tls.cert_file.empty() != settings.tls.key_file.empty()) {
    return bad_url("the options cert and key go together");
  }
  settings.location = location_of(settings);
  settings.tls.location = settings.location;
  return settings;
}

}  // namespace baton::broker::rabbitmq
