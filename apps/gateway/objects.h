#pragma once

// The objects that the two services look after, and where they are kept.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/lease.h"
#include "baton/result.h"

namespace baton::gateway {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;

enum class Phase : std::uint8_t { pending, running, completed, failed };

[[nodiscard]] std::string_view to_string(Phase phase);
[[nodiscard]] std::optional<Phase> parse_phase(std::string_view text);
[[nodiscard]] constexpr bool is_active(Phase phase) {
  return phase == Phase::pending || phase == Phase::running;
}

// What is to be mended: Node/worker-1, or shop/Deployment/cart inside a namespace.
struct Target {
  std::string ns;
  std::string kind;
  std::string name;
  [[nodiscard]] std::string text() const;
  auto operator<=>(const Target&) const = default;
};
[[nodiscard]] std::optional<Target> parse_target(std::string_view text);

// Asks that a target be mended. At most one of a fingerprint is active.
struct RemediationRequest {
  std::string name;
  std::string fingerprint;
  Target target;
  std::string signal;  // JSON: what was reported first
  Phase phase = Phase::pending;
  std::int64_t duplicates = 0;  // reports of the same while it was active
  Time created{};
  Time last_seen{};
  std::string execution;
};

// Mends a target. At most one of a target is active.
struct WorkflowExecution {
  std::string name;
  std::string request;
  Target target;
  Phase phase = Phase::running;
  Time created{};
  Time finished{};
};

// The lease under which an object is written, as far as its store needs to know.
struct Guard {
  std::vector<FenceToken> tokens;  // Lease::tokens()
  std::string owner;               // who writes, for people
  [[nodiscard]] Token token() const { return tokens.empty() ? 0 : tokens.front().token; }
};
[[nodiscard]] Guard guard_of(const Lease& lease, std::string owner);

// Promises no more than a Kubernetes API server does: names are unique, a read sees what was
// written before. That of one fingerprint or target at most one object is active is not the
// store's promise but that of the writer, under a lock: between asking for the active one and
// making another, anything can happen. A store that can, refuses the write of a guard that has been
// overtaken (Code::fenced).
//
// Thread-safe; every call returns within seconds.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual Result<std::optional<RemediationRequest>> request(const std::string& name) = 0;
  virtual Result<std::optional<RemediationRequest>> active_request(
      const std::string& fingerprint) = 0;
  // The newest first, without their signals.
  virtual Result<std::vector<RemediationRequest>> requests(std::optional<Phase> phase,
                                                           std::size_t limit) = 0;

  // From now on nobody writes who was given the lock before this guard. Ask for it before the look
  // that a creation depends on: who slept through the end of its lease has perhaps looked before,
  // and what it writes after our look we would not see. Does nothing in a store without a fence.
  virtual Result<void> overtake(const Guard& guard) = 0;

  // False: the name is taken.
  virtual Result<bool> create(const RemediationRequest& request, const Guard& guard) = 0;

  // How often it has been reported again by now; nothing if it is not active any more.
  virtual Result<std::optional<std::int64_t>> count_duplicate(const std::string& name,
                                                              Time now) = 0;

  // The oldest pending request of each target that nothing runs for, as far as can be seen without
  // a lock.
  virtual Result<std::vector<RemediationRequest>> startable_requests(std::size_t limit) = 0;
  virtual Result<void> set_running(const std::string& request, const std::string& execution,
                                   const Guard& guard) = 0;

  // Ends the requests whose execution has ended; says how many.
  virtual Result<std::size_t> conclude_requests(Time now) = 0;

  virtual Result<std::optional<WorkflowExecution>> execution(const std::string& name) = 0;
  virtual Result<std::optional<WorkflowExecution>> active_execution(const Target& target) = 0;
  virtual Result<std::vector<WorkflowExecution>> executions(std::optional<Phase> phase,
                                                            std::size_t limit) = 0;
  virtual Result<bool> create(const WorkflowExecution& execution, const Guard& guard) = 0;

  // False: it had ended before.
  virtual Result<bool> finish_execution(const std::string& name, Phase phase, Time now) = 0;

  // Forgets what ended before that.
  virtual Result<std::size_t> forget(Time before) = 0;
};

// sqlite:PATH, postgres://…, or k8s://[namespace] with the options of the lock store.
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_objects(std::string_view url);

}  // namespace baton::gateway
