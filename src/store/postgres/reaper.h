#pragma once

#include <memory>

#include "store/postgres/connection.h"

namespace baton::store::postgres {

// Closes sessions whose callers have given up, on a thread of its own: cancelling their statements
// opens a connection and may block, which a caller at its deadline must not. The destructor does
// not wait long for it either; the thread then finishes by itself.
class Reaper {
 public:
  Reaper();
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  void bury(std::unique_ptr<Connection> connection);

 private:
  struct Work;
  std::shared_ptr<Work> work_;
  bool started_ = false;  // the thread, with the first connection
};

}  // namespace baton::store::postgres
