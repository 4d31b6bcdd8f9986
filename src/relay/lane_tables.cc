#include "relay/lane_tables.h"

#include "baton/outbox.h"

namespace baton::relay {
namespace {

bool is_sqlite(const std::string& url) { return url.starts_with("sqlite:"); }

bool is_postgres(const std::string& url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

}  // namespace

Result<std::unique_ptr<LaneTables>> make_lane_tables(const TablesOptions& options) {
#ifdef BATON_HAS_STORE_POSTGRES
  if (is_postgres(options.url)) return postgres_tables(options);
#endif
#ifdef BATON_HAS_STORE_SQLITE
  if (is_sqlite(options.url)) return sqlite_tables(options);
#endif
  // Not the URL itself: it may hold a password.
  return Error{.code = is_sqlite(options.url) || is_postgres(options.url) ? Code::unsupported
                                                                          : Code::bad_url,
               .message =
                   "the database of an outbox is written sqlite:PATH or "
                   "postgres://user@host/database"};
}

std::size_t lane_count(const std::string& url) {
  return is_sqlite(url) ? 1 : static_cast<std::size_t>(kOutboxLanes);
}

}  // namespace baton::relay
