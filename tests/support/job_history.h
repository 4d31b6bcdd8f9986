#pragma once

// What job_replica processes believed, and whether it can have been so.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace baton::test {

struct JobEvent {
  char what = 0;        // S started, E ended with a valid lease, L ended without one
  std::int64_t at = 0;  // boot clock, ns
  std::string job;
  std::int64_t fire = 0;
  std::uint64_t token = 0;
  int attempt = 0;
  std::int64_t late = 0;  // after its due time, µs
  std::string node;       // by the name of the file
};

class JobHistory {
 public:
  // Of every file in the directory; a file is named for its node. Ordered by time.
  static JobHistory read(const std::filesystem::path& directory);

  [[nodiscard]] const std::vector<JobEvent>& events() const { return events_; }
  [[nodiscard]] std::vector<JobEvent> of(char what) const;

  // Fires that ended well more than once or never, fires left out, runs that overlap, tokens that
  // do not rise; one line each. The last fire of a job may be unfinished.
  [[nodiscard]] std::vector<std::string> problems() const;

  // How many fires each node ended, by job.
  [[nodiscard]] std::map<std::string, std::map<std::string, int>> shares() const;

 private:
  std::vector<JobEvent> events_;
};

}  // namespace baton::test
