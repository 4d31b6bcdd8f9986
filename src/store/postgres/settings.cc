#include "store/postgres/settings.h"

#include <memory>
#include <sstream>
#include <vector>

#include <libpq-fe.h>

#include "store/common/url.h"
#include "store/postgres/url.h"

namespace baton::store::postgres {
namespace {

// Takes the option if it is not libpq's.
Result<bool> take_own_option(std::string_view name, std::string_view value, Settings& settings) {
  if (!name.starts_with("baton_")) return false;
  if (name != "baton_apply_timeout") {
    return bad_url("unknown option " + std::string(name) + " in the store URL");
  }
  const auto span = parse_span(value);
  if (!span || *span < Millis(100) || *span > Millis(60'000)) {
    return bad_url("baton_apply_timeout is a time from 100ms to 1m, such as 5s");
  }
  settings.apply_limit = *span;
  return true;
}

std::vector<std::string> listed(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list + ',');  // so that an empty one at the end counts
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

// An address may name its network interface: fe80::1%eth0.
std::string bracketed(const std::string& address) {
  const auto percent = address.find('%');
  if (percent == std::string::npos) return '[' + address + ']';
  return '[' + address.substr(0, percent) + "%25" + address.substr(percent + 1) + ']';
}

// As a URL says it: libpq gives all hosts, and then all ports. There are as many ports as hosts, or
// one for all.
std::string place_of(const std::string& hosts, const std::string& ports) {
  const auto all_ports = listed(ports);
  const auto all_hosts = listed(hosts);
  std::string text;
  for (std::size_t i = 0; i < all_hosts.size(); ++i) {
    const std::string& host = all_hosts[i];
    const bool is_address = host.find(':') != std::string::npos && !host.starts_with('/');
    if (i > 0) text += ',';
    text += is_address ? bracketed(host) : percent_encoded(host);
    const std::string& port = all_ports[all_ports.size() == 1 ? 0 : i];
    if (!port.empty()) text += ':' + port;
  }
  return text;
}

std::string value_of(const Settings& settings, std::string_view keyword) {
  for (const auto& [name, value] : settings.libpq) {
    if (name == keyword) return value;
  }
  return {};
}

// As libpq, which would say so only when it connects.
Result<void> check_ports(const Settings& settings) {
  std::string hosts = value_of(settings, "host");
  if (hosts.empty()) hosts = value_of(settings, "hostaddr");
  const auto ports = listed(value_of(settings, "port")).size();
  const auto wanted = listed(hosts).size();
  if (ports == 1 || ports == wanted) return {};
  return bad_url("a PostgreSQL URL has one port for all hosts or one for each: this one has " +
                 std::to_string(wanted) + (wanted == 1 ? " host and " : " hosts and ") +
                 std::to_string(ports) + " ports");
}

// Without what is secret, but such that it can be given to a command.
std::string location_of(const Settings& settings) {
  std::string text = "postgres://";
  if (const auto user = value_of(settings, "user"); !user.empty()) {
    text += percent_encoded(user) + "@";
  }
  text += place_of(value_of(settings, "host"), value_of(settings, "port"));
  if (const auto database = value_of(settings, "dbname"); !database.empty()) {
    text += "/" + percent_encoded(database);
  }
  return text;
}

}  // namespace

Result<Settings> parse_settings(std::string_view url) {
  if (auto ok = check_url(url); !ok) return ok.error();
  Settings settings;
  const auto plain = without_own_options(url, [&](std::string_view name, std::string_view value) {
    return take_own_option(name, value, settings);
  });
  if (!plain) return plain.error();
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
      PQconninfoParse(plain->c_str(), &problem), &PQconninfoFree);
  // The message of libpq repeats the URL, and with it the password: it is not shown.
  PQfreemem(problem);
  if (!parsed) {
    return bad_url(
        "not a PostgreSQL URL: expected postgres://[user[:password]@][host][:port][/database]"
        "[?option=value&…] with %XX for special characters");
  }
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    settings.libpq.emplace_back(option->keyword, option->val);
    // libpq marks with * what is not to be shown.
    if (option->dispchar[0] == '*' && option->val[0] != '\0') {
      settings.secrets.emplace_back(option->val);
    }
  }
  if (auto ok = check_ports(settings); !ok) return ok.error();
  settings.location = location_of(settings);
  return settings;
}

std::string migrate_command(const Settings& settings) {
  const std::string command = "baton store migrate --store " + settings.location;
  if (settings.secrets.empty()) return command;
  return command + " (with the password of that URL, or with the whole URL in BATON_STORE instead)";
}

std::string scrub(std::string text, const Settings& settings) {
  for (const auto& secret : settings.secrets) text = without_secret(std::move(text), secret);
  return text;
}

}  // namespace baton::store::postgres
