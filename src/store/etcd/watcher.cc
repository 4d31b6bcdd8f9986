#include "store/etcd/watcher.h"

#include <vector>

#include "core/backoff.h"
#include "store/common/jitter_bits.h"
#include "store/etcd/wire.h"

namespace baton::store::etcd {

Watcher::Watcher(Gateway& gateway, Layout layout, std::shared_ptr<Subscribers> subscribers,
                 OnDocument on_document)
    : gateway_(gateway),
      layout_(std::move(layout)),
      subscribers_(std::move(subscribers)),
      on_document_(std::move(on_document)) {}

Watcher::~Watcher() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    restart_.request_stop();
  }
  thread_.join();
}

std::unique_ptr<Watch> Watcher::watch(const std::string& channel, WakeSink& sink) {
  auto watch = subscribers_->add(channel, sink);
  const std::lock_guard lock(mutex_);
  if (channels_.insert(channel).second) restart_.request_stop();
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }
  return watch;
}

void Watcher::work(const std::stop_token& stop) {
  core::Backoff backoff(Millis(50), Millis(5000));
  while (!stop.stop_requested()) {
    std::set<std::string> channels;
    std::stop_token restart;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(channels_, [&](const auto& name) { return !subscribers_->has(name); });
      channels = channels_;
      restart_ = {};
      restart = restart_.get_token();
    }
    if (stop.stop_requested()) return;
    bool worked = false;
    if (!channels.empty()) serve(channels, restart, worked);
    if (worked) backoff.reset();
    std::unique_lock lock(mutex_);
    if (channels != channels_) continue;
    // A channel that comes meanwhile ends the pause.
    const std::stop_callback on_restart(restart, [&] { signal_.notify_all(); });
    signal_.wait_for(lock, stop, channels.empty() ? Millis(60'000) : backoff.next(jitter_bits()),
                     [&] { return restart.stop_requested(); });
  }
}

// Until the stream ends.
void Watcher::serve(const std::set<std::string>& channels, const std::stop_token& stop,
                    bool& worked) {
  std::map<std::string, std::string> channel_of;
  std::vector<std::string> keys;
  for (const std::string& channel : channels) {
    keys.push_back(layout_.wake(channel));
    channel_of[keys.back()] = channel;
  }
  const auto on_ready = [&] {
    worked = true;
    subscribers_->wake_all();  // for what came while nobody listened
  };
  const auto on_put = [&](const KeyValue& put) {
    const auto it = channel_of.find(put.key);
    if (it == channel_of.end()) return;
    const auto message = wire::message(put.value);
    if (!message) return;
    for (const auto& [key, text] : message->documents) on_document_(key, text, put.changed);
    if (!message->grants.empty()) subscribers_->wake(it->second, message->grants);
  };
  // The next request for a lock reports the error.
  [[maybe_unused]] const auto ended = gateway_.watch(keys, on_ready, on_put, stop);
}

}  // namespace baton::store::etcd
