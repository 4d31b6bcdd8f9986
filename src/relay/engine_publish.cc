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
constexpr std::size_t kMaxMarks = 500;  // of a lane in one transaction
constexpr Millis kMarksWait{20};        // for others, while confirms keep coming

Millis since(event::WallTime then) {
  using namespace std::chrono;
  const auto took = duration_cast<Millis>(system_clock::now().time_since_epoch()) -
                    duration_cast<Millis>(then.time_since_epoch());
  return std::max(took, Millis(0));  // clocks of two machines differ
}

std::string take_header(Message& message, std::string_view name) {
  const auto found = message.headers.find(std::string(name));
  return found == message.headers.end() ? std::string() : std::move(found->second);
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
  // What is declared may be gone when the broker comes back.
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

Result<bool> Engine::publish() {
  if (!can_publish(BootClock::now())) return false;
  Outbound out;
  if (!lanes_.empty()) first_lane_ = (first_lane_ + 1) % lanes_.size();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const LanePtr lane = lanes_[(first_lane_ + i) % lanes_.size()];
    if (!lane->look || lane->drain_until || !lane->partition.lease().valid()) continue;
    if (auto gathered = gather(lane, out); !gathered) {
      for (const InFlight& row : out.rows) window_.remove(row.row.bytes);
      return gathered.error();  // which drops the memory of all lanes
    }
  }
  if (out.rows.empty()) return false;
  send(std::move(out));
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
    auto outgoing = lane->messages.take(row.position);
    if (!outgoing) {
      // An operator has discarded it meanwhile.
      window_.remove(row.bytes);
      lane->look->confirm(row.position, PublishOutcome::taken, {}, now);
      if (!unwritten_since_) unwritten_since_ = now;
      continue;
    }
    out.rows.push_back({.lane = lane,
                        .memory = lane->memory,
                        .row = std::move(row),
                        .event_id = outgoing->message.id,
                        .occurred_at = outgoing->occurred_at});
    out.messages.push_back(std::move(outgoing->message));
  }
  if (lane->look->unwritten() > 0 && !unwritten_since_) unwritten_since_ = now;
  return {};
}

// Bodies that did not fit into memory, and those of events that are tried again.
Result<void> Engine::fetch_missing(Lane& lane, const std::vector<Row>& rows) {
  std::vector<Position> missing;
  for (const Row& row : rows) {
    if (!lane.messages.contains(row.position)) missing.push_back(row.position);
  }
  if (missing.empty()) return {};
  auto fetched = tables_->fetch(lane.owned.number, missing);
  if (!fetched) return fetched.error();
  lane.messages.add(std::move(*fetched));
  return {};
}

void Engine::send(Outbound out) {
  auto first = publisher_->publish(out.messages, BootClock::now() + kPublishLimit);
  if (!first) {
    // What may have been sent is published once more; its confirms belong to nothing any more.
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
      InFlight& row = out.rows[i];
      window_.remove(row.row.bytes);
      row.lane->look->confirm(row.row.position, PublishOutcome::unknown, {}, BootClock::now());
      row.lane->messages.add(row.row.position, {std::move(out.messages[i]), row.occurred_at});
    }
    return broker_trouble(first.error());
  }
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    ++out.rows[i].lane->unconfirmed;
    if (options_.on_event) {  // the message itself is not kept
      out.rows[i].type = take_header(out.messages[i], event::header::type);
      out.rows[i].correlation_id = take_header(out.messages[i], event::header::correlation_id);
    }
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
  if (confirms->empty() && in_flight_.empty() && BootClock::now() >= publish_at_ &&
      publisher_->state().connected) {
    broker_trouble_.reset();
  }
  return !confirms->empty();
}

void Engine::confirmed(const Confirm& confirm, Instant now) {
  const auto found = in_flight_.find(confirm.tag);
  if (found == in_flight_.end()) return;
  InFlight sent = std::move(found->second);
  in_flight_.erase(found);
  window_.remove(sent.row.bytes);
  if (confirm.outcome == PublishOutcome::unknown) {
    if (now >= publish_at_) {
      broker_trouble({.code = Code::unavailable, .message = confirm.why, .retryable = true});
    }
  } else {
    broker_trouble_.reset();
    broker_backoff_ = Millis(0);
  }
  Lane& lane = *sent.lane;
  if (!lane.look || lane.memory != sent.memory) return;
  --lane.unconfirmed;
  lane.look->confirm(sent.row.position, confirm.outcome, confirm.why, now);
  if (lane.look->unwritten() > 0 && !unwritten_since_) unwritten_since_ = now;
  count(std::move(sent), confirm);
}

void Engine::count(InFlight&& sent, const Confirm& confirm) {
  RelayEvent event{.lane = sent.lane->owned.number,
                   .event_id = std::move(sent.event_id),
                   .type = std::move(sent.type),
                   .aggregate = std::move(sent.row.aggregate),
                   .routing_key = sent.row.route.substr(sent.row.route.find('\n') + 1),
                   .correlation_id = std::move(sent.correlation_id),
                   .why = confirm.why,
                   .attempts = sent.row.attempts};
  switch (confirm.outcome) {
    case PublishOutcome::taken:
      ++counts_.published;
      event.took = since(sent.occurred_at);
      break;
    case PublishOutcome::returned: {
      ++event.attempts;
      const bool last = event.attempts >= options_.max_attempts;
      ++(last ? counts_.failed : counts_.retries);
      event.kind = last ? RelayEvent::Kind::failed : RelayEvent::Kind::returned;
      break;
    }
    case PublishOutcome::refused:
      ++counts_.refused;
      event.kind = RelayEvent::Kind::refused;
      break;
    case PublishOutcome::unknown: return;
  }
  tell(std::move(event));
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
  const bool wait = unwritten < kMaxMarks && !in_flight_.empty() && !draining &&
                    now < *unwritten_since_ + kMarksWait;
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
    for (const Mark& mark : batch.batch.marks) (void)(*lane)->messages.take(mark.position);
    if ((*lane)->look->unwritten() > 0) unwritten_since_ = now;
    held = held || (*lane)->look->held() > 0;
  }
  // What waited behind a row that is SENT now is due: do not wait for the next second.
  if (held) {
    const auto pause = std::max<BootClock::duration>(Millis(2), heads_took_ * 5);
    heads_at_ = std::min<Instant>(heads_at_, BootClock::now() + pause);
  }
  drop_fenced(*fenced);
  return true;
}

}  // namespace baton::relay
