#pragma once

#include <thread>

#include "baton/locks.h"
#include "cli/output.h"

namespace baton::cli {

// While it lives, one line on the terminal says who is in the way of an acquire and which place in
// the queue is ours. Says nothing where stderr is no terminal, or not ours at the moment because we
// run in the background.
class WaitProgress {
 public:
  WaitProgress(Output& out, LockClient locks, LockName name);
  ~WaitProgress();
  WaitProgress(const WaitProgress&) = delete;
  WaitProgress& operator=(const WaitProgress&) = delete;

 private:
  Output& out_;
  std::jthread thread_;
};

}  // namespace baton::cli
