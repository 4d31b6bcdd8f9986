// The half of the engine that speaks to the broker, and writes what came of it.

#include <algorithm>
#include <utility>

#include "event/message_headers.h"
#include "relay/engine.h"

namespace baton::relay {
namespace {

// Well below the time after which the database takes a session for that of a stopped process.
constexpr Millis kPublishLimit{2'000};
constexpr Millis kConnectLimit{2'000};
constexpr Millis kVisitBroker{1'000};
constexpr std::size_t kMaxMarks = 1'000;  // of a lane in one transaction
constexpr Millis kMarksWait{50};          // for others, while confirms keep coming
// Messages whose confirm is overdue. What is known of them stays in memory until it comes; with
// more of them the window is no longer relieved.
constexpr std::size_t kMaxOverdue = 10'000;

Millis since(event::WallTime then) {
  using namespace std::chrono;
  const auto took = duration_cast<Millis>(system_clock::now().time_since_epoch()) -
                    duration_cast<Millis>(then.time_since_epoch());
  return std::max(took, Millis(0));  // clocks of two machines differ
}

}  // namespace

Result<void> Engine::prepare_publisher() {
  const Instant now = BootClock::now();
  if (options_.topology && !declared_) {
    if (auto made = broker_->declare(*options_.topology, now + kConnectLimit); !made) return made;
    declared_ = true;
  }
  if (publisher_) return {};
  auto publisher = broker_->publisher();
  if (!publisher) return publisher.error();
  publisher_ = std::move(*publisher);
  return {};
}

void Engine::broker_trouble(const Error& error) {
  broker_trouble_ = error;
  declared_ = false;
  broker_backoff_ = std::clamp(broker_backoff_ * 2, kFirstBackoff, kMaxBackoff);
  publish_at_ = BootClock::now() + broker_backoff_;
}

bool Engine::can_publish(Instant now) {
  if (now < publish_at_) return false;
  // Exchanges and queues may be gone when the broker comes back.
  if (publisher_ && !publisher_->state().connected) declared_ = false;
  auto ready = prepare_publisher();
  if (ready && !publisher_->state().blocked) ready = visit_broker(now);
  if (!ready) {
    broker_trouble(ready.error());
    return false;
  }
  return !publisher_->state().blocked;
}

// A relay with nothing to publish shows too that its broker is away, or back.
Result<void> Engine::visit_broker(Instant now) {
  if (now < visit_at_) return {};
  visit_at_ = now + kVisitBroker;
  auto reached = publisher_->publish({}, now + kConnectLimit);
  if (!reached) return reached.error();
  return {};
}

// Confirms make room in the window for the next messages.
Result<bool> Engine::refill() {
  const bool confirmed = collect_confirms(BootClock::now());
  auto published = publish();
  if (!published) return published;
  return confirmed || *published;
}

Result<bool> Engine::publish() {
  if (!can_publish(BootClock::now())) return false;
  Outbound& out = outbound_;
  out.clear();
  if (!lanes_.empty()) first_lane_ = (first_lane_ + 1) % lanes_.size();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const LanePtr lane = lanes_[(first_lane_ + i) % lanes_.size()];
    if (!lane->look || lane->drain_until || !lane->partition.lease().valid()) continue;
    if (auto gathered = gather(lane, out); !gathered) {
      for (const InFlight& row : out.rows) window_.remove(row.row.bytes);
      out.clear();
      return gathered.error();  // which drops the memory of all lanes
    }
  }
  if (out.rows.empty()) return false;
  send(out);
  out.clear();
  return true;
}

Result<void> Engine::gather(const LanePtr& lane, Outbound& out) {
  const Instant now = BootClock::now();
  std::vector<Row> rows = lane->look->publish(window_, now);
  if (auto fetched = fetch_missing(*lane, rows); !fetched) {
    for (const Row& row : rows) window_.remove(row.bytes);
    return fetched;
  }
  for (Row& row : rows) {
    auto stored = lane->events.take(row.position);
    if (!stored) {
      // An operator has discarded it meanwhile.
      window_.remove(row.bytes);
      lane->look->confirm(row.position, PublishOutcome::taken, {}, now);
      if (!unwritten_since_) unwritten_since_ = now;
      continue;
    }
    event::SentEvent event = stored->event();
    InFlight& sent = out.rows.emplace_back(
        InFlight{.lane = lane, .memory = lane->memory, .row = std::move(row)});
    if (options_.on_event) {  // the event itself is not kept
      sent.occurred_at = event.occurred_at;
      sent.event_id = event.event.id;
      sent.type = event.event.type;
      sent.correlation_id = event.event.correlation_id;
    }
    event::write_message(std::move(event), out.next_message());
  }
  if (lane->look->unwritten() > 0 && !unwritten_since_) unwritten_since_ = now;
  return {};
}

// Bodies that did not fit into memory, and those of events that are tried again.
Result<void> Engine::fetch_missing(Lane& lane, const std::vector<Row>& rows) {
  std::vector<Position> missing;
  for (const Row& row : rows) {
    if (!lane.events.contains(row.position)) missing.push_back(row.position);
  }
  if (missing.empty()) return {};
  auto fetched = tables_->fetch(lane.owned.number, missing);
  if (!fetched) return fetched.error();
  lane.events.add(std::move(*fetched));
  return {};
}

void Engine::send(Outbound& out) {
  auto first =
      publisher_->publish({out.messages.data(), out.rows.size()}, BootClock::now() + kPublishLimit);
  if (!first) {
    // Messages that may have been sent are published once more; confirms of the first ones are
    // ignored.
    for (const InFlight& row : out.rows) {
      window_.remove(row.row.bytes);
      row.lane->look->confirm(row.row.position, PublishOutcome::unknown, {}, BootClock::now());
    }
    return broker_trouble(first.error());
  }
  sent_.push_back({.first = *first, .count = out.rows.size(), .at = BootClock::now()});
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    ++out.rows[i].lane->unconfirmed;
    in_flight_.emplace(*first + i, std::move(out.rows[i]));
  }
}

bool Engine::collect_confirms(Deadline by) {
  if (!publisher_) return false;
  auto confirms = publisher_->confirms(by);
  if (!confirms) {
    broker_trouble(confirms.error());
    return false;
  }
  const Instant now = BootClock::now();
  for (const Confirm& confirm : *confirms) confirmed(confirm, now);
  const bool any_overdue = find_overdue(now);
  if (confirms->empty() && awaited() == 0 && BootClock::now() >= publish_at_ &&
      publisher_->state().connected) {
    broker_trouble_.reset();
  }
  return !confirms->empty() || any_overdue;
}

// A queue that has lost the majority of its nodes takes messages and confirms none: it must not
// keep the window from the other routes.
bool Engine::find_overdue(Instant now) {
  if (publisher_->state().blocked) {  // which is the trouble of the broker
    for (SentBatch& batch : sent_) batch.at = now;
    return false;
  }
  bool any = false;
  while (!sent_.empty() && now >= sent_.front().at + options_.confirm_within) {
    if (overdue_ >= kMaxOverdue) break;
    const SentBatch batch = sent_.front();
    sent_.pop_front();
    for (std::uint64_t tag = batch.first; tag < batch.first + batch.count; ++tag) {
      const auto found = in_flight_.find(tag);
      if (found == in_flight_.end()) continue;
      give_up_on(found->second, now);
      any = true;
    }
  }
  return any;
}

void Engine::give_up_on(InFlight& sent, Instant now) {
  sent.overdue = true;
  ++overdue_;
  window_.remove(sent.row.bytes);
  ++silent_routes_[sent.row.route];
  for (const LanePtr& one : lanes_) {
    if (one->look) one->look->shut(sent.row.route, now + kAskAgain);
  }
  Lane& lane = *sent.lane;
  if (!lane.look || lane.memory != sent.memory) return;
  --lane.unconfirmed;
  const std::string why = "no confirm came within " +
                          std::to_string(options_.confirm_within.count()) +
                          " ms: a queue behind its routing key does not answer";
  lane.look->overdue(sent.row.position, why);
  if (!unwritten_since_) unwritten_since_ = now;
  count(InFlight(sent), {.outcome = PublishOutcome::refused, .why = why});
}

// `unknown` means that the connection broke, and nobody knows whether the route answers again: it
// stays shut, but is tried at once.
void Engine::confirmed_late(InFlight&& sent, const Confirm& confirm, Instant now) {
  --overdue_;
  const auto route = silent_routes_.find(sent.row.route);
  if (--route->second == 0) silent_routes_.erase(route);
  for (const LanePtr& lane : lanes_) {
    if (!lane->look) continue;
    if (confirm.outcome == PublishOutcome::unknown) {
      lane->look->shut(sent.row.route, now);
    } else {
      lane->look->open(sent.row.route);
    }
  }
  Lane& lane = *sent.lane;
  const bool known = lane.look && lane.memory == sent.memory;
  if (!known || confirm.outcome != PublishOutcome::taken) return;
  lane.look->taken_late(sent.row, now);
  if (!unwritten_since_) unwritten_since_ = now;
  count(std::move(sent), confirm);
}

void Engine::confirmed(const Confirm& confirm, Instant now) {
  const auto found = in_flight_.find(confirm.tag);
  if (found == in_flight_.end()) return;
  InFlight sent = std::move(found->second);
  in_flight_.erase(found);
  if (!sent.overdue) window_.remove(sent.row.bytes);
  if (confirm.outcome == PublishOutcome::unknown) {
    if (now >= publish_at_) {
      broker_trouble({.code = Code::unavailable, .message = confirm.why, .retryable = true});
    }
  } else {
    broker_trouble_.reset();
    broker_backoff_ = Millis(0);
  }
  if (sent.overdue) return confirmed_late(std::move(sent), confirm, now);
  Lane& lane = *sent.lane;
  if (!lane.look || lane.memory != sent.memory) return;
  --lane.unconfirmed;
  lane.look->confirm(sent.row.position, confirm.outcome, confirm.why, now);
  if (lane.look->unwritten() > 0 && !unwritten_since_) unwritten_since_ = now;
  count(std::move(sent), confirm);
}

void Engine::count(InFlight&& sent, const Confirm& confirm) {
  auto kind = RelayEvent::Kind::published;
  int attempts = sent.row.attempts;
  switch (confirm.outcome) {
    case PublishOutcome::taken: ++counts_.published; break;
    case PublishOutcome::returned: {
      const bool last = ++attempts >= options_.max_attempts;
      ++(last ? counts_.failed : counts_.retries);
      kind = last ? RelayEvent::Kind::failed : RelayEvent::Kind::returned;
      break;
    }
    case PublishOutcome::refused:
      ++counts_.refused;
      kind = RelayEvent::Kind::refused;
      break;
    case PublishOutcome::unknown: return;
  }
  if (!options_.on_event) return;
  const bool taken = kind == RelayEvent::Kind::published;
  tell({.kind = kind,
        .lane = sent.lane->owned.number,
        .event_id = std::move(sent.event_id),
        .type = std::move(sent.type),
        .aggregate = std::move(sent.row.aggregate),
        .routing_key = sent.row.route.substr(sent.row.route.find('\n') + 1),
        .correlation_id = std::move(sent.correlation_id),
        .why = confirm.why,
        .attempts = attempts,
        .took = taken ? since(sent.occurred_at) : Millis(0)});
}

Result<bool> Engine::write_marks() {
  if (!unwritten_since_) return false;
  const Instant now = BootClock::now();
  std::size_t unwritten = 0;
  bool draining = false;
  for (const LanePtr& lane : lanes_) {
    if (!lane->look) continue;
    unwritten += lane->look->unwritten();
    draining = draining || lane->drain_until.has_value();
  }
  const bool wait =
      unwritten < kMaxMarks && awaited() != 0 && !draining && now < *unwritten_since_ + kMarksWait;
  if (wait) return false;
  std::vector<LaneBatch> batches;
  for (const LanePtr& lane : lanes_) {
    if (!lane->look) continue;
    Batch batch = lane->look->batch(kMaxMarks);
    if (!batch.empty()) batches.push_back({lane->owned, std::move(batch)});
  }
  unwritten_since_.reset();
  if (batches.empty()) return false;
  auto fenced = tables_->write(batches);
  if (!fenced) return fenced.error();
  bool held = false;
  for (const LaneBatch& batch : batches) {
    if (fenced->contains(batch.lane.number)) continue;
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const LanePtr& one) {
      return one->owned.number == batch.lane.number && one->look;
    });
    (*lane)->look->written(batch.batch);
    for (const Mark& mark : batch.batch.marks) {
      if (mark.kind != Mark::Kind::sent) (void)(*lane)->events.take(mark.position);
    }
    if ((*lane)->look->unwritten() > 0) unwritten_since_ = now;
    held = held || (*lane)->look->held() > 0;
  }
  // Events that waited behind a row that is SENT now are due: look before the next regular time.
  if (held) {
    const auto pause = std::max<BootClock::duration>(Millis(2), heads_took_ * 5);
    heads_at_ = std::min<Instant>(heads_at_, BootClock::now() + pause);
  }
  drop_fenced(*fenced);
  return true;
}

}  // namespace baton::relay
