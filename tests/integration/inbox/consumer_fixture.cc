#include "consumer_fixture.h"

#include <algorithm>
#include <stdexcept>

#include "event/message_headers.h"

namespace baton::test {

void Notes::add(const ConsumerNote& note) {
  const std::lock_guard lock(mutex_);
  notes_.emplace_back(note.kind, note.reason);
  changed_.notify_all();
}

bool Notes::wait(Kind kind, int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] {
    return std::count_if(notes_.begin(), notes_.end(),
                         [&](const auto& note) { return note.first == kind; }) >= count;
  });
}

int Notes::count(Kind kind) {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(notes_.begin(), notes_.end(),
                                        [&](const auto& note) { return note.first == kind; }));
}

std::string Notes::last_reason(Kind kind) {
  const std::lock_guard lock(mutex_);
  for (auto it = notes_.rbegin(); it != notes_.rend(); ++it) {
    if (it->first == kind) return it->second;
  }
  return {};
}

ConsumerTest::ConsumerTest() {
  database_ = sql::Connection::open(service_->url()).value();
  if (database_->postgres() != nullptr) {
    install_inbox(database_->postgres()).value();
    install_outbox(database_->postgres()).value();
  } else {
    install_inbox(database_->sqlite()).value();
    install_outbox(database_->sqlite()).value();
  }
  database_->script("CREATE TABLE effects (event_id TEXT, what TEXT)").value();
  broker_ = Broker::open(broker_url()).value();
  broker_
      ->declare({.exchanges = {{"documents"}},
                 .queues = {{"q"}},
                 .bindings = {{"documents", "#", "q", {}}}},
                BootClock::now() + patience)
      .value();
}

ConsumerOptions ConsumerTest::options() {
  ConsumerOptions options{.name = "validation", .queue = "q"};
  options.on_note = [this](const ConsumerNote& note) { notes_.add(note); };
  options.poll_interval = Millis{10};
  options.breaker_pause = Millis{10};
  options.outbox.exchange = "documents";
  options.time_shift = [this] { return Millis{shift_.load()}; };
  return options;
}

Consumer& ConsumerTest::consume(Consumer::Handler handler) {
  return consume(options(), std::move(handler));
}

Consumer& ConsumerTest::consume(ConsumerOptions options, Consumer::Handler handler) {
  consumers_.push_back(
      std::make_unique<Consumer>(broker_, service_->url(), std::move(options), std::move(handler)));
  consumers_.back()->start().value();
  return *consumers_.back();
}

Event ConsumerTest::event(const std::string& aggregate) {
  return {.id = make_event_id(),
          .type = "DocumentUploaded",
          .aggregate = aggregate,
          .exchange = "documents",
          .routing_key = "document.uploaded",
          .payload = R"({"pages":3})",
          .correlation_id = "request-7"};
}

Message ConsumerTest::message(const Event& event) {
  return event::to_message({.event = event, .lane = 3, .position = 17});
}

void ConsumerTest::publish(const std::vector<Message>& messages) const {
  auto publisher = broker_->publisher().value();
  publisher->publish(messages, BootClock::now() + patience).value();
  for (std::size_t confirmed = 0; confirmed < messages.size();) {
    const auto confirms = publisher->confirms(BootClock::now() + patience).value();
    for (const Confirm& confirm : confirms) {
      if (confirm.outcome != PublishOutcome::taken) throw std::runtime_error(confirm.why);
      ++confirmed;
    }
  }
}

void ConsumerTest::publish(const std::vector<Event>& events) const {
  std::vector<Message> messages;
  for (const Event& one : events) messages.push_back(message(one));
  publish(messages);
}

std::string ConsumerTest::ask(const std::string& sql) const {
  const auto rows = database_->query(sql).value();
  return rows.empty() ? "" : rows.front().text(0);
}

bool ConsumerTest::ask_until(const std::string& sql, const std::string& answer) const {
  return poll_until([&] { return ask(sql) == answer; });
}

}  // namespace baton::test
