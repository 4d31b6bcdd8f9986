#pragma once

#include <memory>

#include "store/postgres/connection.h"

namespace baton::store::postgres {

// Ends sessions that their callers have given up on. Telling the server to stop takes a connection
// of its own and may block, which a caller at its deadline cannot afford; nor can whoever closes
// the store, so a farewell that takes too long goes on without us.
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
  bool started_ = false;  // the thread, by the first burial
};

}  // namespace baton::store::postgres
