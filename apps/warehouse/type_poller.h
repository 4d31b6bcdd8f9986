#pragma once

#include <memory>
#include <string>

#include "apps/warehouse/config.h"
#include "apps/warehouse/poller.h"
#include "baton/scheduler.h"
#include "sql/pool.h"

namespace baton::warehouse {

// What the job of a type does: polls all its active observers, one after another. An observer that
// fails does not keep the others from being polled; a source that cannot be reached does.
class TypePoller {
 public:
  TypePoller(const ObserverType& type, const Config& config, std::shared_ptr<sql::Pool> data,
             Millis poll_takes);

  // Throws std::runtime_error with one line if anything failed.
  void poll(Run& run, PollFigures& figures);

 private:
  Result<void> poll_all(const Poll& poll, Run& run, PollFigures& figures);
  Result<void> poll_one(ObserverStore& store, const Poll& poll, const Observer& observer,
                        sql::Connection& database, Run& run, PollFigures& figures);
  [[nodiscard]] Result<void> check_cursor(const Observer& observer) const;

  const ObserverType& type_;
  const SourceOptions source_options_;
  const PollLimits limits_;
  const Millis poll_takes_;
  std::shared_ptr<sql::Pool> data_;
  sql::Pool source_;
};

}  // namespace baton::warehouse
