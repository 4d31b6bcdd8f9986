#pragma once

// What the jobs of a store do, and telling them what to do: from any process, for all replicas. A
// command is written to the note of lock:X:job-control:commanding:{job}; schedulers look there
// every SchedulerOptions::poll_every.

#include <optional>
#include <string>
#include <vector>

#include "baton/locks.h"
#include "baton/node.h"

namespace baton {

inline constexpr std::string_view kJobSubject = "job";
inline constexpr std::string_view kJobPredicate = "running";
inline constexpr std::string_view kJobControlSubject = "job-control";
inline constexpr std::string_view kJobControlPredicate = "commanding";

struct JobRun {
  std::int64_t fire = 0;
  WallTime due{};
  WallTime started{};
  WallTime ended{};
  Millis duration{0};
  std::string node;
  std::string result;  // ok, failed, skipped, crashed
  std::string detail;
  int attempt = 1;
};

struct JobStatus {
  std::string name;
  std::string schedule;            // as text; empty if it is not known
  std::string state;               // waiting, running, crashed, paused; gone: no live node has it
  std::vector<std::string> nodes;  // live ones that have it
  bool paused = false;
  std::string paused_by;
  int run_requests = 0;        // run now: asked for and not begun
  int skip_requests = 0;       // skip next: asked for and not done
  std::optional<JobRun> last;  // that ended
  std::vector<JobRun> past;    // before that, newest first: as many as JobOptions::keep_runs says
  std::optional<JobRun> running;  // or crashed: no end, no duration
  int attempt = 0;                // of that
  Token token = 0;                // of the running one
  Millis expires_in{0};           // of its lease
  std::optional<WallTime> next;   // when it is due next; empty while it runs
  int failures = 0;               // in a row
};

// Ordered by name, those that are gone behind the others.
[[nodiscard]] BATON_EXPORT Result<std::vector<JobStatus>> list_jobs(
    LockClient& locks, const std::string& region = std::string(kDefaultRegion));
[[nodiscard]] BATON_EXPORT Result<JobStatus> show_job(
    LockClient& locks, const std::string& job,
    const std::string& region = std::string(kDefaultRegion));

enum class JobCommand : std::uint8_t {
  pause,      // no fire starts until resume; one that runs goes on
  resume,     // fires that were missed are treated as the misfire policy says
  run_now,    // one fire more, at once, on one node; also while paused
  skip_next,  // the next fire does not run
};

// Each changes nothing if it cannot be written. A job that no scheduler has ever registered is
// bad_request, with the nearest name there is.
BATON_EXPORT Result<void> command_job(LockClient& locks, const std::string& job, JobCommand command,
                                      const std::string& region = std::string(kDefaultRegion));

// Clears what the store knows of a job that was removed from the configuration, and its commands.
// Refused as busy while a live node has the job. One of that name begins with fire 1 again.
BATON_EXPORT Result<void> forget_job(LockClient& locks, const std::string& job,
                                     const std::string& region = std::string(kDefaultRegion));

}  // namespace baton
