#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "core/lock_table.h"
#include "store/common/listener_thread.h"
#include "store/common/subscribers.h"
#include "store/postgres/statements.h"

namespace baton::store::postgres {

// Receives the notifications of the watched channels, on a connection and a thread of its own that
// start with the first watch. After a time without a connection it wakes every watch, since
// notifications may have been missed. Every few minutes it also sweeps rows that nobody needs.
class Listener {
 public:
  struct Options {
    std::function<TestClock()> now;
    bool drop_wakeups = false;  // for tests: ignore every notification
  };

  Listener(const Settings& settings, Options options);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink);

 private:
  bool serve(const std::stop_token& stop);
  bool follow(Connection& connection, std::set<std::string>& heard);
  void deliver(Connection& connection, bool& gone);
  bool sweep(Connection& connection);

  const Settings& settings_;
  Options options_;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();

  std::mutex mutex_;
  std::map<std::string, std::string> channels_;  // by their NOTIFY name
  std::string swept_to_;
  Instant next_sweep_{};
  ListenerThread thread_;  // last: it uses all the others
};

}  // namespace baton::store::postgres
