#include "store/postgres/url.h"

#include <algorithm>

namespace baton::store::postgres {
namespace {

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// host[:port],…, where a host may be [an:IPv6:address].
bool is_host_list(std::string_view text) {
  while (true) {
    const auto comma = text.find(',');
    std::string_view host = text.substr(0, comma);
    if (host.starts_with('[')) {
      const auto end = host.find(']');
      if (end == std::string_view::npos) return false;
      host.remove_prefix(end + 1);
    }
    const auto colon = host.find(':');
    if (colon != std::string_view::npos && !is_number(host.substr(colon + 1))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool is_well_formed(std::string_view url) {
  std::string_view rest = url.substr(url.find("://") + 3);
  rest = rest.substr(0, rest.find('?'));
  const auto slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  const auto at = authority.find('@');
  if (at == std::string_view::npos) {
    // An '@' that comes later was meant to end a password that has a '/' in it.
    return rest.find('@') == std::string_view::npos && is_host_list(authority);
  }
  return authority.find('@', at + 1) == std::string_view::npos &&
         is_host_list(authority.substr(at + 1));
}

}  // namespace

Result<void> check_url(std::string_view url) {
  if (!url.starts_with("postgres://") && !url.starts_with("postgresql://")) {
    return Error{.code = Code::bad_url,
                 .message = "a PostgreSQL URL starts with postgres:// or postgresql://"};
  }
  if (is_well_formed(url)) return {};
  return Error{.code = Code::bad_url,
               .message =
                   "cannot understand the postgres:// URL; write "
                   "postgres://user:password@host:5432/database, with %40 for '@', %2F for "
                   "'/' and %25 for '%' in a password"};
}

}  // namespace baton::store::postgres
