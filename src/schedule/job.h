#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/scheduler.h"
#include "schedule/job_note.h"

namespace baton::schedule {

// Both clocks at one moment: the boot clock to wait by, the wall clock to be due by.
struct Moment {
  Instant now;
  WallTime wall;
};

// What there is to do, on this node.
struct JobSpec {
  std::string name;
  Schedule schedule;
  JobOptions options;
  std::uint64_t hash = 0;
};

// What this node knows of a job. It may be out of date, so every attempt is
// conditional on it in the store.
struct JobView {
  bool known = false;  // somebody has looked
  std::int64_t ordinal = 0;
  std::optional<JobNote> note;
  bool held = false;  // by somebody, or parked for its at-least-for time
  bool parked = false;
  Instant free_at{};      // unless the holder renews
  Instant seen_at{};      // when the look was begun
  Instant since{};        // it has looked like this
  WallTime first_seen{};  // this ordinal
};

// A request for the lock of a job, and what is to be done under it.
struct Attempt {
  enum class Kind : std::uint8_t {
    run,        // a fire
    register_,  // the job's first note: from now on all replicas agree when it is due
    skip,       // the next fire is done without having been run
    give_up,    // the fire that crashed is done without having ended
  };
  Kind kind = Kind::run;
  std::string job;
  std::int64_t if_ordinal_below = 0;
  JobNote note;  // to be written with the grant
};

// What to do about a job next.
struct Decision {
  enum class What : std::uint8_t { wait, look, start } what = What::wait;
  Instant at = Instant::max();     // wait and look: not before
  bool due = false;                // a fire is due now
  std::optional<Attempt> attempt;  // start
};

// Where this node stands among those that may run a job.
struct NodePosition {
  std::uint64_t index = 0;
  std::uint64_t nodes = 1;
};

}  // namespace baton::schedule
