#include "baton/consumer.h"

#include <exception>

#include "core/bad_request.h"
#include "inbox/consumer_loop.h"

namespace baton {

Result<std::string> Handling::BoundOutbox::add(Event event) const {
  std::vector<Event> events;
  events.push_back(std::move(event));
  auto ids = add_all(std::move(events));
  if (!ids) return ids.error();
  return std::move(ids->front());
}

Result<std::vector<std::string>> Handling::BoundOutbox::add_all(std::vector<Event> events) const {
  const Event& cause = *parts_->event;
  for (Event& event : events) {
    if (event.correlation_id.empty()) event.correlation_id = cause.correlation_id;
    if (event.causation_id.empty()) event.causation_id = cause.id;
    if (event.traceparent.empty()) event.traceparent = cause.traceparent;
  }
  if (parts_->postgres != nullptr) return parts_->outbox->add_all(parts_->postgres, events);
  return parts_->outbox->add_all(parts_->sqlite, events);
}

Consumer::Consumer(std::shared_ptr<Broker> broker, std::string database_url,
                   ConsumerOptions options, Handler handler)
    : loop_(std::make_unique<inbox::ConsumerLoop>(std::move(broker), std::move(database_url),
                                                  std::move(options), std::move(handler))) {}

Consumer::~Consumer() { (void)stop(); }

Result<void> Consumer::run(std::stop_token stop) { return loop_->run(std::move(stop)); }

Result<void> Consumer::start() {
  const std::lock_guard lock(loop_->mutex);
  if (loop_->thread.joinable()) return bad_request("this consumer was started before");
  try {
    loop_->thread = std::jthread(
        [loop = loop_.get()](std::stop_token stop) { loop->ended = loop->run(std::move(stop)); });
  } catch (const std::exception& problem) {
    return Error{.code = Code::unavailable,
                 .message = std::string("no thread could be started: ") + problem.what(),
                 .retryable = true};
  }
  return {};
}

Result<void> Consumer::stop() {
  const std::lock_guard lock(loop_->mutex);
  if (loop_->thread.joinable()) {
    loop_->thread.request_stop();
    loop_->thread.join();
  }
  return loop_->ended;
}

}  // namespace baton
