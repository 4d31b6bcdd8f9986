#include "apps/warehouse/type_poller.h"

#include <optional>
#include <stdexcept>
#include <thread>

namespace baton::warehouse {
namespace {

// One for the poll, and one for a poll that has lost its lock and has not noticed yet.
constexpr std::size_t kSourceConnections = 2;

std::string summary(const PollFigures& figures) {
  return std::to_string(figures.rows) + " rows read, " + std::to_string(figures.events) +
         " events published";
}

}  // namespace

TypePoller::TypePoller(const ObserverType& type, const Config& config,
                       std::shared_ptr<sql::Pool> data, Millis poll_takes)
    : type_(type),
      source_options_(config.source),
      limits_(config.limits),
      poll_takes_(poll_takes),
      data_(std::move(data)),
      source_(config.source_of(type.name),
              {.name = "source of " + type.name,
               .application = "warehouse",
               .read_only = true,
               .statement_timeout = config.statement_timeout},
              kSourceConnections) {}

void TypePoller::poll(Run& run, PollFigures& figures) {
  const Poll poll{.type = type_, .guard = {run.tokens()}, .node = run.node(), .fire = run.number()};
  const auto done = poll_all(poll, run, figures);
  if (!done) throw std::runtime_error(done.error().message);
  run.set_detail(summary(figures));
}

Result<void> TypePoller::poll_all(const Poll& poll, Run& run, PollFigures& figures) {
  auto data = data_->take();
  if (!data) return data.error();
  ObserverStore store(**data);
  auto observers = store.begin(poll);
  if (!observers) return observers.error();
  std::optional<Error> first;
  for (const Observer& observer : *observers) {
    if (run.stop().stop_requested()) break;
    auto source = source_.take();
    const auto done = source ? poll_one(store, poll, observer, **source, run, figures)
                             : Result<void>(source.error());
    if (done) continue;
    if (!first) {
      first = done.error();
      first->message = "observer " + observer.name + ": " + first->message;
    }
    // There is nothing to poll, or somebody else polls by now.
    if (!source || done.error().code == Code::fenced) break;
  }
  const auto ended = store.end(poll, figures, !first);
  if (!first && !ended) first = ended.error();
  if (first) return *first;
  return {};
}

Result<void> TypePoller::check_cursor(const Observer& observer) const {
  const std::string_view wanted = to_string(source_options_.cursor);
  if (observer.cursor_kind == wanted) return {};
  return Error{.code = Code::bad_request,
               .message = "its state is a cursor by " + observer.cursor_kind + ", not by " +
                          std::string(wanted) + "; set warehouse.cursor back"};
}

Result<void> TypePoller::poll_one(ObserverStore& store, const Poll& poll, const Observer& observer,
                                  sql::Connection& database, Run& run, PollFigures& figures) {
  if (auto ok = check_cursor(observer); !ok) return ok;
  TableSource source(database, type_, source_options_);
  ObserverPoll observer_poll(store, poll, limits_);
  if (poll_takes_ > Millis(0)) {
    observer_poll.before_write = [this] { std::this_thread::sleep_for(poll_takes_); };
  }
  return observer_poll.run(observer, source, run.stop(), figures);
}

}  // namespace baton::warehouse
