#pragma once

#include <string>
#include <utility>
#include <vector>

#include "baton/result.h"

namespace baton::sql {

// A postgres:// URL, taken apart by libpq.
struct PostgresUrl {
  std::vector<std::pair<std::string, std::string>> keywords;  // libpq's, with their values
  std::string location;                                       // the URL without secrets
  std::vector<std::string> secrets;                           // never to be printed
};

[[nodiscard]] Result<PostgresUrl> parse_postgres_url(const std::string& url);

// The text with *** for each of the secrets.
[[nodiscard]] std::string scrub(std::string text, const std::vector<std::string>& secrets);

}  // namespace baton::sql
