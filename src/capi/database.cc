// The SQL that a fence and an outbox need in the database of the data, for any driver, and the
// calls that prepare databases once.

#include "baton/clock.h"
#include "baton/locks.h"
#include "baton/store_admin.h"
#include "capi/boundary.h"
#ifdef BATON_HAS_SQL
#include "baton/fence.h"
#include "sql/connection.h"
#endif
#ifdef BATON_HAS_STORE_SQLITE
#include "store/sqlite/fence_check.sql.h"
#include "store/sqlite/fence_granted.sql.h"
#endif
#ifdef BATON_HAS_OUTBOX
#include "baton/outbox.h"
#include "json/json.h"
#include "outbox/complete_event.h"
#include "outbox/sqlite_add.sql.h"
#endif

namespace baton::capi {
namespace {

// `missing`: what an SQL database would be needed for.
[[maybe_unused]] Error not_built(const std::string& missing) {
  return {.code = Code::unsupported,
          .message = "this build of Baton has no " + missing +
                     ": build it with sqlite and postgres in BATON_STORES"};
}

// Runs `install` on a new session.
#ifdef BATON_HAS_SQL
template <typename Install>
Result<void> prepare(const char* url, Install&& install) {
  if (url == nullptr) return bad_request("the URL of the database is NULL");
  // The file must be there: a typing error must not make an empty database.
  auto connection = sql::Connection::open(url, {.create = false});
  if (!connection) return connection.error();
#ifdef BATON_HAS_STORE_POSTGRES
  if ((*connection)->kind() == sql::Kind::postgres) return install((*connection)->postgres());
#endif
#ifdef BATON_HAS_STORE_SQLITE
  if ((*connection)->kind() == sql::Kind::sqlite) return install((*connection)->sqlite());
#endif
  return not_built("store for this database");
}
#endif

Result<void> install_fence_in([[maybe_unused]] const char* url) {
#ifdef BATON_HAS_SQL
  return prepare(url, [](auto* session) { return install_fence(session); });
#else
  return not_built("fence");
#endif
}

Result<void> install_outbox_in([[maybe_unused]] const char* url) {
#ifdef BATON_HAS_OUTBOX
  return prepare(url, [](auto* session) { return install_outbox(session); });
#else
  return not_built("outbox");
#endif
}

#ifdef BATON_HAS_OUTBOX
Result<Event> read_event(const baton_event& given) {
  auto headers = read_pairs(given.headers, "the headers");
  if (!headers) return headers.error();
  return Event{.id = text_or(given.id, ""),
               .type = text_or(given.type, ""),
               .aggregate = text_or(given.aggregate, ""),
               .aggregate_type = text_or(given.aggregate_type, ""),
               .exchange = text_or(given.exchange, ""),
               .routing_key = text_or(given.routing_key, ""),
               .payload = text_or(given.payload, "{}"),
               .headers = std::move(*headers),
               .correlation_id = text_or(given.correlation_id, ""),
               .causation_id = text_or(given.causation_id, ""),
               .traceparent = text_or(given.traceparent, ""),
               .version = given.version == 0 ? 1 : given.version};
}
#endif

// In the order of the parameters of sqlite_add.sql.
Result<std::string> event_parameters([[maybe_unused]] int database,
                                     [[maybe_unused]] const baton_event* given) {
#ifdef BATON_HAS_OUTBOX
  if (given == nullptr) return bad_request("the event is NULL");
  const auto read = read_struct(given);
  if (!read) return read.error();
  const auto event = read_event(*read);
  if (!event) return event.error();
  const auto complete = outbox::complete_to_publish(*event, {});
  if (!complete) return complete.error();
  auto parameters = nlohmann::json::array(
      {complete->id, event->type, event->aggregate_type, event->aggregate, complete->exchange,
       complete->routing_key, event->payload, complete->headers, event->correlation_id,
       event->causation_id, event->traceparent, event->version});
  if (database == BATON_POSTGRESQL) parameters.push_back(read->quiet != 0);
  return parameters.dump();
#else
  return not_built("outbox");
#endif
}

// The embedded texts are views; here the caller gets them with a NUL.
template <typename View>
const char* with_nul(View text) {
  static const std::string copy{text()};
  return copy.c_str();
}

}  // namespace
}  // namespace baton::capi

extern "C" {

using namespace baton::capi;  // NOLINT(google-build-using-namespace): the functions are the API

const char* baton_fence_check_sql(int database) noexcept {
  if (database == BATON_POSTGRESQL) return "SELECT public.baton_fence($1::text)";
#ifdef BATON_HAS_STORE_SQLITE
  if (database == BATON_SQLITE) {
    return guarded_value<const char*>(nullptr, [] {
      return with_nul([] { return baton::embedded::store_sqlite::fence_check_sql; });
    });
  }
#endif
  return nullptr;
}

const char* baton_fence_granted_sql(int database) noexcept {
#ifdef BATON_HAS_STORE_SQLITE
  if (database == BATON_SQLITE) {
    return guarded_value<const char*>(nullptr, [] {
      return with_nul([] { return baton::embedded::store_sqlite::fence_granted_sql; });
    });
  }
#endif
  (void)database;
  return nullptr;
}

const char* baton_outbox_add_sql(int database) noexcept {
#ifdef BATON_HAS_OUTBOX
  if (database == BATON_POSTGRESQL) {
    return "SELECT outbox_add(event_id => $1::uuid, type => $2::text, aggregate_type => $3::text,"
           " aggregate_id => $4::text, exchange => $5::text, routing_key => $6::text,"
           " payload => $7::text, headers => $8::text, correlation_id => $9::text,"
           " causation_id => $10::text, traceparent => $11::text, version => $12::integer,"
           " quiet => $13::boolean)";
  }
  if (database == BATON_SQLITE) {
    return guarded_value<const char*>(
        nullptr, [] { return with_nul([] { return baton::embedded::outbox::sqlite_add_sql; }); });
  }
#endif
  (void)database;
  return nullptr;
}

int baton_event_parameters(int database, const baton_event* event, char* buffer, size_t size,
                           size_t* length, baton_error* error) noexcept {
  return guarded(error, [&] {
    if (database != BATON_POSTGRESQL && database != BATON_SQLITE) {
      return told(error, baton::bad_request("the database is BATON_POSTGRESQL or BATON_SQLITE"));
    }
    const auto parameters = event_parameters(database, event);
    if (!parameters) return told(error, parameters.error());
    const size_t whole = copy_out(*parameters, buffer, size);
    if (length != nullptr) *length = whole;
    return done(error);
  });
}

int baton_migrate(const char* url, int64_t timeout_ms, baton_error* error) noexcept {
  return guarded(error, [&] {
    if (url == nullptr) return told(error, baton::bad_request("the URL of the store is NULL"));
    const auto by = baton::BootClock::now() + millis_or(timeout_ms, baton::Millis(10'000));
    auto admin = baton::open_admin(url, by);
    if (!admin) return told(error, admin.error());
    const auto migrated = (*admin)->migrate(by);
    return migrated ? done(error) : told(error, migrated.error());
  });
}

int baton_install_fence(const char* database_url, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto installed = install_fence_in(database_url);
    return installed ? done(error) : told(error, installed.error());
  });
}

int baton_install_outbox(const char* database_url, baton_error* error) noexcept {
  return guarded(error, [&] {
    const auto installed = install_outbox_in(database_url);
    return installed ? done(error) : told(error, installed.error());
  });
}

}  // extern "C"
