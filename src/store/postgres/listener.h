#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "core/lock_table.h"
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
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink);

 private:
  void work(const std::stop_token& stop);
  bool serve(Connection& connection, const std::stop_token& stop);
  bool listen_anew(Connection& connection, std::set<std::string>& heard);
  void deliver(Connection& connection, bool& gone);
  bool sweep(Connection& connection);
  void pause(Millis most, const std::stop_token& stop, int socket);
  void signal();

  const Settings& settings_;
  Options options_;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
  int event_;  // eventfd: something to do

  std::mutex mutex_;
  std::map<std::string, std::string> channels_;  // by their NOTIFY name
  std::string swept_to_;
  Instant next_sweep_{};
  std::jthread thread_;
};

}  // namespace baton::store::postgres
