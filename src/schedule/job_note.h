#pragma once

// What the note of a job says. Ordinal 2n: fire n has started; 2n+1: fire n is done. Ordinals only
// rise, so "below what I saw, plus one" is compare-and-swap: the request that takes the lock is
// refused if anything has happened to the job since its note was read.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/job_control.h"
#include "baton/store.h"

namespace baton::schedule {

inline constexpr std::size_t kMaxDetailBytes = 200;
inline constexpr std::string_view kCrashed = "crashed";  // the result of a run that nobody ended

// Times are milliseconds since 1970, so that notes stay short.
struct PastRun {
  std::int64_t fire = 0;
  std::int64_t due = 0;
  std::int64_t started = 0;
  std::int64_t ended = 0;
  std::int64_t took = 0;  // by a clock that does not step
  std::string node;
  std::string result;
  std::string detail;
  int attempt = 1;
  bool operator==(const PastRun&) const = default;
};

struct JobNote {
  std::int64_t fire = 0;
  bool started = false;    // and not done
  std::int64_t due = 0;    // of this fire
  std::int64_t began = 0;  // when it was started, or registered
  std::string node;        // that started it
  int attempt = 0;
  bool manual = false;
  std::int64_t runs = 0;        // how many run-now requests have been begun
  std::int64_t skips = 0;       // how many skip-next requests have been done
  int failures = 0;             // in a row
  std::int64_t offset = -1;     // of its turns (rank.h), the same for all nodes; -1: not given yet
  std::int64_t next = 0;        // done: when the next is due; for people
  std::string schedule;         // for people
  std::optional<PastRun> last;  // the last fire that is done
  std::vector<PastRun> past;    // those before it, the newest first (JobOptions::keep_runs)

  [[nodiscard]] std::int64_t ordinal() const { return 2 * fire + (started ? 0 : 1); }
  bool operator==(const JobNote&) const = default;
};

// As many of the past runs as there is room for.
[[nodiscard]] NoteChange to_note(const JobNote& note);

// `run` is the last one from now on, and of those before it `keep - 1` are kept.
void remember_run(JobNote& note, PastRun run, std::size_t keep);

// Whatever the text is: the ordinal alone says which fire it is and whether it is done. Nothing for
// ordinal 0: the job has never been registered.
[[nodiscard]] std::optional<JobNote> from_note(const Note& note);

// The note of a job's control name: commands, counted, so that a repeated look does nothing twice.
struct ControlNote {
  std::int64_t version = 0;  // the ordinal
  bool paused = false;
  std::string paused_by;
  std::int64_t runs = 0;
  std::int64_t skips = 0;
};
[[nodiscard]] NoteChange to_note(const ControlNote& note);
[[nodiscard]] ControlNote control_from_note(const Note& note);

[[nodiscard]] LockName job_name(const std::string& job, const std::string& region);
[[nodiscard]] LockName control_name(const std::string& job, const std::string& region);

// The job behind the key of either.
[[nodiscard]] std::optional<std::string> job_of_key(std::string_view key);

}  // namespace baton::schedule
