#include "apps/warehouse/poller.h"

#include <algorithm>

namespace baton::warehouse {

Result<void> ObserverPoll::run(Observer observer, Source& source, const std::stop_token& stop,
                               PollFigures& figures) {
  // Before anything is read: a row that becomes visible from now on is not below this horizon.
  auto horizon = source.horizon();
  ++figures.queries;
  if (!horizon) return horizon.error();
  ObserverState& state = observer.state;
  if (!state.in_pass) {
    state.in_pass = true;
    state.pass_horizon = std::max(horizon->complete_below, state.complete_below);
    state.page = {.at = state.complete_below};
  }
  state.last_polled_timestamp = horizon->clock;
  for (std::size_t i = 0; i < limits_.batches && !stop.stop_requested(); ++i) {
    auto more = page(observer, source, figures);
    if (!more) return more.error();
    if (!*more) break;
  }
  return {};
}

// Whether there is more to read.
Result<bool> ObserverPoll::page(Observer& observer, Source& source, PollFigures& figures) {
  auto rows = source.read(observer.name, observer.state.page, limits_.batch);
  ++figures.queries;
  if (!rows) return rows.error();
  if (before_write) before_write();
  ObserverState next = observer.state;
  const bool more = rows->size() >= limits_.batch;
  if (more) {
    next.page = rows->back().position;
  } else {
    next.complete_below = next.pass_horizon;
    next.in_pass = false;
    next.page = {};
  }
  auto events = store_.publish(poll_, observer, *rows, next);
  if (!events) return events.error();
  figures.rows += static_cast<std::int64_t>(rows->size());
  figures.events += *events;
  observer.state = next;
  return more;
}

}  // namespace baton::warehouse
