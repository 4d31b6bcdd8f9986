#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "store/common/subscribers.h"
#include "store/etcd/gateway.h"
#include "store/etcd/layout.h"

namespace baton::store::etcd {

// Hears the wake-ups that other processes send to the channels of this one.
class Watcher {
 public:
  // A document that another process has just written.
  using OnDocument =
      std::function<void(const std::string& key, const std::string& text, Revision version)>;
  Watcher(Gateway& gateway, Layout layout, std::shared_ptr<Subscribers> subscribers,
          OnDocument on_document);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink);

 private:
  void work(const std::stop_token& stop);
  void serve(const std::set<std::string>& channels, const std::stop_token& stop, bool& worked);

  Gateway& gateway_;
  const Layout layout_;
  const std::shared_ptr<Subscribers> subscribers_;
  const OnDocument on_document_;
  std::mutex mutex_;
  std::condition_variable_any signal_;
  std::set<std::string> channels_;
  std::stop_source restart_;  // ends the stream when there is a new channel
  std::jthread thread_;       // started by the first channel
};

}  // namespace baton::store::etcd
