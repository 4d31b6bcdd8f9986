#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "store/common/listener_thread.h"
#include "store/common/subscribers.h"
#include "store/redis/connection.h"
#include "store/redis/layout.h"

namespace baton::store::redis {

// Hears the messages of the channels that are watched, on a connection and a thread of its own that
// start with the first watch. Whatever may have been missed while there was no connection,
// everybody is woken for.
class Listener {
 public:
  Listener(const Settings& settings, const Layout& layout);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink);

 private:
  bool serve(const std::stop_token& stop);
  bool follow(Connection& connection, std::set<std::string>& heard);
  bool deliver(const std::vector<Value>& values);

  const Settings& settings_;
  const Layout& layout_;
  std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();

  std::mutex mutex_;
  std::set<std::string> channels_;
  ListenerThread thread_;  // last: it uses all the others
};

}  // namespace baton::store::redis
