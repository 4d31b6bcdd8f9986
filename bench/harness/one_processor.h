#pragma once

#include <sched.h>
#include <sys/types.h>

#include <utility>
#include <vector>

namespace baton::bench {

// While it lives, these processes, and the threads and processes that they start, share one
// processor. Two that work in turns then never wait for another one to wake up, which in a virtual
// machine takes longer than the work, and as long as its host pleases.
class OneProcessor {
 public:
  explicit OneProcessor(const std::vector<pid_t>& processes);
  ~OneProcessor();
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  std::vector<std::pair<pid_t, cpu_set_t>> before_;
};

}  // namespace baton::bench
