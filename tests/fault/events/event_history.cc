#include "event_history.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "support/event_topology.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShown = 5;  // problems of a kind

sql::Rows ask(sql::Connection& database, const std::string& text) {
  auto rows = database.query(text);
  if (!rows) throw std::runtime_error(rows.error().message);
  return std::move(*rows);
}

void add_problem(EventVerdict& verdict, std::size_t& of_this_kind, std::string problem) {
  if (++of_this_kind <= kShown) verdict.problems.push_back(std::move(problem));
}

struct Committed {
  std::string aggregate;
  std::int64_t number = 0;
};

std::map<std::string, Committed> committed_events(sql::Connection& shop) {
  std::map<std::string, Committed> all;
  for (const auto& row : ask(shop, "SELECT event_id, aggregate, number FROM business")) {
    all[row.text(0)] = {row.text(1), row.integer(2)};
  }
  return all;
}

// Each committed event has exactly one effect, and nothing else has any.
void judge_effects(sql::Connection& sink, const std::map<std::string, Committed>& committed,
                   EventVerdict& verdict) {
  std::map<std::string, int> effects;
  for (const auto& row : ask(sink, "SELECT event_id FROM effect")) ++effects[row.text(0)];
  verdict.effects = effects.size();
  std::size_t lost = 0;
  std::size_t doubled = 0;
  std::size_t invented = 0;
  for (const auto& [id, event] : committed) {
    const auto found = effects.find(id);
    const std::string what = event.aggregate + " " + std::to_string(event.number);
    if (found == effects.end()) {
      add_problem(verdict, lost, "no effect of " + what);
    } else if (found->second > 1) {
      add_problem(verdict, doubled, std::to_string(found->second) + " effects of " + what);
    }
  }
  for (const auto& [id, count] : effects) {
    if (!committed.contains(id)) add_problem(verdict, invented, "an effect of nothing: " + id);
  }
}

// First occurrences are in the order in which the transactions of the aggregate became visible,
// which is that of its numbers.
void judge_order(const Spy& spy, const std::map<std::string, Committed>& committed,
                 EventVerdict& verdict) {
  std::size_t swapped = 0;
  std::size_t unknown = 0;
  std::size_t seen = 0;
  for (const auto& [aggregate, ids] : spy.first_seen()) {
    std::int64_t last = 0;
    for (const auto& id : ids) {
      const auto found = committed.find(id);
      if (found == committed.end()) {
        add_problem(verdict, unknown, "published, but never committed: " + id);
        continue;
      }
      ++seen;
      if (found->second.number <= last) {
        add_problem(verdict, swapped,
                    aggregate + " " + std::to_string(found->second.number) +
                        " was first published after " + std::to_string(last));
      }
      last = std::max(last, found->second.number);
    }
  }
  if (seen != committed.size()) {
    verdict.problems.push_back("of " + std::to_string(committed.size()) + " events " +
                               std::to_string(seen) + " were seen on the spy queue");
  }
}

void judge_tables(sql::Connection& shop, sql::Connection& sink, const EventLimits& limits,
                  EventVerdict& verdict) {
  for (const auto& row : ask(shop,
                             "SELECT status, count(*), max(retry_count) FROM outbox_events"
                             " GROUP BY status ORDER BY status")) {
    if (row.text(0) != "SENT") {
      verdict.problems.push_back("outbox: " + row.text(1) + " events are " + row.text(0));
    }
    if (row.integer(2) > limits.attempts) {
      verdict.problems.push_back("outbox: an event used " + row.text(2) + " attempts");
    }
  }
  for (const auto& row : ask(sink,
                             "SELECT status, count(*), max(last_error) FROM inbox_events"
                             " GROUP BY status ORDER BY status")) {
    verdict.problems.push_back("inbox: " + row.text(1) + " events are " + row.text(0) + ": " +
                               row.text(2));
  }
}

}  // namespace

void Spy::watch(Broker& broker, const std::stop_token& stop) {
  const auto soon = [] { return BootClock::now() + 1s; };
  while (!stop.stop_requested()) {
    auto subscription = broker.subscribe(kSpyQueue, {.prefetch = 100}, soon());
    while (subscription && !stop.stop_requested()) {
      const auto deliveries = (*subscription)->take(100, BootClock::now() + 100ms);
      if (!deliveries) break;
      std::vector<Settlement> settlements;
      for (const Delivery& delivery : *deliveries) {
        saw(delivery.message);
        settlements.push_back({.tag = delivery.tag});
      }
      if (!(*subscription)->settle(settlements, soon())) break;
    }
    if (!subscription) std::this_thread::sleep_for(50ms);
  }
}

void Spy::saw(const Message& message) {
  const std::lock_guard lock(mutex_);
  if (!ids_.insert(message.id).second) return;
  const auto aggregate = message.headers.find("aggregate");
  order_[aggregate == message.headers.end() ? "" : aggregate->second].push_back(message.id);
}

std::map<std::string, std::vector<std::string>> Spy::first_seen() const {
  const std::lock_guard lock(mutex_);
  return order_;
}

std::size_t Spy::count() const {
  const std::lock_guard lock(mutex_);
  return ids_.size();
}

EventVerdict judge_events(sql::Connection& shop, sql::Connection& sink, const Spy& spy,
                          const EventLimits& limits) {
  EventVerdict verdict;
  const auto committed = committed_events(shop);
  verdict.committed = committed.size();
  judge_effects(sink, committed, verdict);
  judge_order(spy, committed, verdict);
  judge_tables(shop, sink, limits, verdict);
  return verdict;
}

}  // namespace baton::test
