#pragma once

// Which node has which jobs: every scheduler writes it down, so that a job that was removed from
// the configuration can be told from one that waits for its time. The list is in the notes of
// lock:X:node:alive:{id}:jobs:{scheduler}:{part}, with the second in which the node was started as
// their ordinal: that of an earlier process does not count. Nobody holds these names, so that
// looking for live nodes does not read them.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/locks.h"
#include "baton/node.h"

namespace baton::schedule {

struct JobListKey {
  std::string region;
  std::string node;
  std::uint64_t scheduler = 0;  // of its process
};

// Replaces the list.
[[nodiscard]] Result<void> write_job_list(LockClient& locks, const JobListKey& key,
                                          WallTime node_started, std::vector<std::string> jobs);

// As far as the store answers.
void clear_job_list(LockClient& locks, const JobListKey& key);

// The live nodes that have each job, ordered by id.
using JobNodes = std::unordered_map<std::string, std::vector<std::string>>;
[[nodiscard]] Result<JobNodes> find_job_nodes(LockClient& locks, const std::string& region);

}  // namespace baton::schedule
