#include "store/postgres/settings.h"

#include <memory>

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

std::string location_of(const Settings& settings) {
  const auto get = [&](std::string_view keyword) {
    for (const auto& [name, value] : settings.libpq) {
      if (name == keyword) return value;
    }
    return std::string();
  };
  std::string text = "postgres://";
  if (const auto user = get("user"); !user.empty()) text += user + "@";
  text += get("host");
  if (const auto port = get("port"); !port.empty()) text += ":" + port;
  if (const auto database = get("dbname"); !database.empty()) text += "/" + database;
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
  // What libpq says here repeats the URL, and with it the password.
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
  settings.location = location_of(settings);
  return settings;
}

std::string scrub(std::string text, const Settings& settings) {
  for (const auto& secret : settings.secrets) {
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3)) {
      text.replace(at, secret.size(), "***");
    }
  }
  return text;
}

}  // namespace baton::store::postgres
