#pragma once

// One processor while this replica owns it: looks, handles batches, retries and pauses, rebuilds.
// On the thread that calls run().

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "baton/processors.h"
#include "eventlog/log_session.h"

namespace baton::eventlog {

struct ProcessorSpec {
  std::string name;
  std::string kind;
  std::vector<std::string> tables;
  EventHandler handler;
};

class BatchState {
 public:
  std::vector<LoggedEvent> events;
  const ProcessorSpec* spec = nullptr;
  sql::Connection* connection = nullptr;
  bool rebuilding = false;
};

class ProcessorWorker {
 public:
  ProcessorWorker(const ProcessorSpec& spec, Registration registration, std::string database,
                  const ProcessorsOptions& options);

  void run(const std::stop_token& stop);

 private:
  enum class Pass : std::uint8_t { idle, busy };

  Result<Pass> pass();
  Result<Pass> handle_next(const ProcessorRow& row);
  Result<Pass> rebuild_next(const ProcessorRow& row);
  Result<void> begin_rebuild();
  Result<void> call(sql::Transaction& transaction, std::vector<LoggedEvent> events,
                    bool rebuilding);
  Result<void> say_alive();
  void report(const Error& error);

  const ProcessorSpec& spec_;
  const Registration registration_;
  const std::string database_;
  const ProcessorsOptions& options_;
  std::unique_ptr<LogSession> session_;
  Position nothing_up_to_ = -1;  // the frontier when the log had no more for us
  Position one_by_one_to_ = 0;   // a batch up to here has failed
  Position rebuild_one_by_one_to_ = 0;
  int rebuild_attempts_ = 0;
  int conflicts_ = 0;   // in a row
  Instant not_before_;  // of the next attempt
  Instant next_heartbeat_;
  std::optional<Instant> stalled_since_;
  bool stall_saved_ = false;
  std::string last_reported_;
};

}  // namespace baton::eventlog
