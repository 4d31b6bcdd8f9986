#pragma once

// The rules of the scheduler, without threads, clocks or stores: what a node does about a job that
// it sees like this, at this moment.
//
//   no note           → register it: note 1, "fire 0 done"
//   2n, held          → fire n runs somewhere: look again when it may be over or have expired
//   2n, not held      → its node crashed: run fire n again, or (on_crash: skip) take it as done, or
//                       (after max_attempts) write that it is given up
//   2n+1              → fire n is done: n+1 is due at a time that follows from the note alone
//
// Those whose turn it is not look before they leap, rank × rank_step later.

#include "schedule/job.h"

namespace baton::schedule {

struct Circumstances {
  Moment moment;
  ControlNote control;
  Instant control_since{};  // it has been so
  NodePosition place;
  std::int64_t offset = 0;  // for a job that has none yet
  Millis rank_step{25};
  std::string node;  // this one
};

[[nodiscard]] Decision decide(const JobSpec& job, const JobView& view, const Circumstances& around);

// When the fire after the one of `note` is due; the note is done.
[[nodiscard]] WallTime next_due(const JobSpec& job, const JobNote& note);

}  // namespace baton::schedule
