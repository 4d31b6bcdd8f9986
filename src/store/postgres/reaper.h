#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "store/postgres/connection.h"

namespace baton::store::postgres {

// Ends sessions that their callers have given up on. Telling the server to stop takes a connection
// of its own and may block, which a caller at its deadline cannot afford.
class Reaper {
 public:
  Reaper() = default;
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  void bury(std::unique_ptr<Connection> connection);

 private:
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any signal_;
  std::vector<std::unique_ptr<Connection>> dead_;
  std::jthread thread_;  // started by the first burial
};

}  // namespace baton::store::postgres
