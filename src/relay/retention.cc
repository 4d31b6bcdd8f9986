#include "relay/retention.h"

#include <utility>

#include "outbox/clean.h"
#include "sql/connection.h"

namespace baton::relay {

bool Retention::clean(const std::stop_token& stop) {
  std::int64_t removed = 0;
  auto done = clean_all(stop, removed);
  if (removed > 0 && options_.on_event) {
    options_.on_event({.kind = RelayEvent::Kind::cleaned, .count = removed});
  }
  if (done) {
    told_.clear();
    return true;
  }
  tell(done.error());
  return !done.error().retryable;
}

Result<void> Retention::clean_all(const std::stop_token& stop, std::int64_t& removed) const {
  auto connection = sql::Connection::open(url_,
                                          {.application = "baton relay",
                                           .create = false,
                                           .statement_timeout = options_.statement_timeout},
                                          BootClock::now() + options_.statement_timeout);
  if (!connection) return connection.error();
  for (bool more = true; more && !stop.stop_requested();) {
    auto cleaned = outbox::clean(**connection, {.retention = options_.keep, .most = 1'000});
    if (!cleaned) return cleaned.error();
    removed += cleaned->removed;
    more = cleaned->more;
  }
  return {};
}

// Once for each reason: without rights it is the same every hour.
void Retention::tell(Error error) {
  if (told_ == error.message) return;
  told_ = error.message;
  if (!options_.on_error) return;
  error.message = "old events are not removed: " + error.message;
  options_.on_error(error);
}

}  // namespace baton::relay
