#include "events/relay_in_turns.h"

#include <utility>

#include "baton/locks.h"
#include "events/backlog.h"
#include "harness/machine.h"
#include "locks/session.h"

namespace baton::bench {

RelayInTurns::RelayInTurns(Lab& lab, const std::string& name, Outbox outbox)
    : name_(name),
      outbox_(std::move(outbox)),
      rabbitmq_(lab.rabbitmq().pid()),
      broker_(Broker::open(lab.rabbitmq().url()).value()),
      turns_(std::make_shared<Turns>()),
      purger_(lab.rabbitmq().port(), name, "", 1),
      relay_(open("memory:").value(), outbox_.database, in_turns(broker_, turns_), {.name = name}) {
  lab.declare(*broker_, name);
  fill();
  const auto start = std::chrono::steady_clock::now();
  relay_.start().value();
  turns_->wait_until_ready();
  first_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  sessions_ = Session(outbox_.database)
                  .ask(
                      "SELECT string_agg(pid::text, ',') FROM pg_stat_activity"
                      " WHERE application_name = 'baton relay' AND datname = current_database()");
}

void RelayInTurns::fill() {
  if (outbox_.waiting >= outbox_.at_least) return;
  const std::int64_t more = outbox_.at_least - outbox_.waiting + outbox_.at_least / 10;
  add_backlog(outbox_.database, name_, more);
  outbox_.waiting += more;
}

Slice RelayInTurns::run(std::chrono::milliseconds time) {
  fill();
  const double rabbitmq = cpu_seconds_of_process(rabbitmq_);
  const double sessions = cpu_seconds_of(sessions_);
  const Slice slice = turns_->run(time);
  spent_.rabbitmq += cpu_seconds_of_process(rabbitmq_) - rabbitmq;
  spent_.sessions += cpu_seconds_of(sessions_) - sessions;
  outbox_.waiting -= static_cast<std::int64_t>(slice.steps);
  all_ += slice;
  purger_.purge(name_);
  return slice;
}

RelayInTurns::Cost RelayInTurns::cost() const {
  const double each = 1e6 / static_cast<double>(all_.steps);
  return {.relay = all_.cpu * each,
          .sessions = spent_.sessions * each,
          .rabbitmq = spent_.rabbitmq * each};
}

}  // namespace baton::bench
