#include "store/postgres/settings.h"

#include <charconv>
#include <memory>
#include <optional>

#include <libpq-fe.h>

#include "store/postgres/url.h"

namespace baton::store::postgres {
namespace {

Error bad_url(std::string message) {
  return Error{.code = Code::bad_url, .message = std::move(message)};
}

// 500ms, 5s, 1m.
std::optional<Millis> parse_span(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || number <= 0 || number > 1'000'000) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "ms") return Millis(number);
  if (unit == "s") return Millis(number * 1000);
  if (unit == "m") return Millis(number * 60'000);
  return std::nullopt;
}

Result<void> take_own_option(std::string_view option, Settings& settings) {
  const auto equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
  if (name != "baton_apply_timeout") {
    return bad_url("unknown option " + std::string(name) + " in the store URL");
  }
  const auto span = parse_span(value);
  if (!span || *span < Millis(100) || *span > Millis(60'000)) {
    return bad_url("baton_apply_timeout is a time from 100ms to 1m, such as 5s");
  }
  settings.apply_limit = *span;
  return {};
}

// The URL as libpq may see it.
Result<std::string> without_own_options(std::string_view url, Settings& settings) {
  const auto question = url.find('?');
  if (question == std::string_view::npos) return std::string(url);
  std::string rest(url.substr(0, question));
  char separator = '?';
  for (std::size_t from = question + 1; from <= url.size();) {
    const auto to = std::min(url.find('&', from), url.size());
    const std::string_view option = url.substr(from, to - from);
    if (option.starts_with("baton_")) {
      if (auto taken = take_own_option(option, settings); !taken) return taken.error();
    } else if (!option.empty()) {
      rest += separator;
      rest += option;
      separator = '&';
    }
    from = to + 1;
  }
  return rest;
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
  auto plain = without_own_options(url, settings);
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
