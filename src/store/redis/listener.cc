#include "store/redis/listener.h"

#include "store/redis/msgpack.h"

namespace baton::store::redis {
namespace {

constexpr Millis kPingEvery{10'000};

}  // namespace

Listener::Listener(const Settings& settings, const Layout& layout)
    : settings_(settings),
      layout_(layout),
      thread_([this](const std::stop_token& stop) { return serve(stop); }) {}

std::unique_ptr<Watch> Listener::watch(const std::string& channel, WakeSink& sink) {
  auto watch = subscribers_->add(channel, sink);
  const std::lock_guard lock(mutex_);
  channels_.insert(channel);
  thread_.wake();
  return watch;
}

// Runs until the connection or the listener ends; tells whether it ever worked. A server that is
// gone without a word is noticed by its silence after a PING.
bool Listener::serve(const std::stop_token& stop) {
  const auto opened =
      Connection::open(settings_, settings_.node, BootClock::now() + settings_.apply_limit);
  if (!opened) return false;
  Connection& connection = **opened;
  std::set<std::string> heard;
  bool worked = false;
  Instant last_heard = BootClock::now();
  Instant pinged = last_heard;
  while (!stop.stop_requested()) {
    if (!follow(connection, heard)) return worked;
    thread_.pause(kPingEvery, stop, connection.socket());
    std::vector<Value> values;
    if (!connection.receive(values)) return worked;
    const Instant now = BootClock::now();
    if (deliver(values)) worked = true;
    if (!values.empty()) last_heard = now;
    if (now - pinged < kPingEvery) continue;
    if (pinged > last_heard) return worked;
    pinged = now;
    if (!connection.send(Commands().add({"PING"}), now + settings_.apply_limit)) return worked;
  }
  return worked;
}

// Subscribes to what is watched by now, and leaves what nobody watches any more: at the latest when
// the next watch begins, so the channels that clients came and went with do not add up.
bool Listener::follow(Connection& connection, std::set<std::string>& heard) {
  Commands commands;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(channels_, [&](const auto& channel) { return !subscribers_->has(channel); });
    std::erase_if(heard, [&](const auto& channel) {
      if (channels_.contains(channel)) return false;
      commands.add({"UNSUBSCRIBE", layout_.channels() + channel});
      return true;
    });
    for (const auto& channel : channels_) {
      if (heard.insert(channel).second) commands.add({"SUBSCRIBE", layout_.channels() + channel});
    }
  }
  if (commands.count() == 0) return true;
  return connection.send(commands, BootClock::now() + settings_.apply_limit).has_value();
}

// Everything before a subscription took effect may have been missed.
bool Listener::deliver(const std::vector<Value>& values) {
  std::map<std::string, std::vector<GrantId>> grants;
  bool subscribed = false;
  for (const Value& value : values) {
    if (value.list.size() != 3) continue;
    subscribed = subscribed || value.list[0].text == "subscribe";
    const std::string& name = value.list[1].text;
    const std::string& grant = value.list[2].text;
    if (value.list[0].text != "message" || grant.size() != 16) continue;
    if (name.starts_with(layout_.channels())) {
      grants[name.substr(layout_.channels().size())].push_back(grant_in(grant));
    }
  }
  if (subscribed) subscribers_->wake_all();
  for (const auto& [channel, woken] : grants) subscribers_->wake(channel, woken);
  return subscribed;
}

}  // namespace baton::store::redis
