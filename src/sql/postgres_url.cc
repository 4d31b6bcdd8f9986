#include "sql/postgres_url.h"

#include <memory>

#include <libpq-fe.h>

#include "store/common/url.h"
#include "store/postgres/url.h"

namespace baton::sql {
namespace {

std::string location_of(const PostgresUrl& url) {
  const auto get = [&](std::string_view keyword) {
    for (const auto& [name, value] : url.keywords) {
      if (name == keyword) return value;
    }
    return std::string();
  };
  std::string text = "postgres://";
  if (const auto user = get("user"); !user.empty()) text += store::percent_encoded(user) + "@";
  text += get("host");
  if (const auto port = get("port"); !port.empty()) text += ":" + port;
  if (const auto database = get("dbname"); !database.empty()) {
    text += "/" + store::percent_encoded(database);
  }
  return text;
}

}  // namespace

Result<PostgresUrl> parse_postgres_url(const std::string& url) {
  if (auto ok = store::postgres::check_url(url); !ok) return ok.error();
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
      PQconninfoParse(url.c_str(), &problem), &PQconninfoFree);
  PQfreemem(problem);  // it repeats parts of the URL, and with them the password
  if (!parsed) {
    return store::bad_url(
        "cannot understand the postgres:// URL; its options must be those of libpq, with %XX for "
        "special characters");
  }
  PostgresUrl result;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    result.keywords.emplace_back(option->keyword, option->val);
    // libpq marks with * what is not to be shown.
    if (option->dispchar[0] == '*' && option->val[0] != '\0') {
      result.secrets.emplace_back(option->val);
    }
  }
  result.location = location_of(result);
  return result;
}

std::string scrub(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) text = store::without_secret(std::move(text), secret);
  return text;
}

}  // namespace baton::sql
