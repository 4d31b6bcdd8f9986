#include "store/postgres/listener.h"

#include <algorithm>

#include "store/common/jitter_bits.h"

namespace baton::store::postgres {
namespace {

constexpr Millis kSweepEvery = std::chrono::minutes(3);
constexpr Millis kSweepOn{200};
constexpr std::int32_t kSweepRows = 1000;

}  // namespace

Listener::Listener(const Settings& settings, Options options)
    : settings_(settings),
      options_(std::move(options)),
      thread_([this](const std::stop_token& stop) { return serve(stop); }) {}

std::unique_ptr<Watch> Listener::watch(const std::string& channel, WakeSink& sink) {
  auto watch = subscribers_->add(channel, sink);
  const std::lock_guard lock(mutex_);
  channels_.emplace(notify_channel(channel), channel);
  thread_.wake();
  return watch;
}

// Runs until the connection or the listener ends; returns whether it ever worked.
bool Listener::serve(const std::stop_token& stop) {
  const auto opened = Connection::open(settings_, BootClock::now() + settings_.apply_limit);
  if (!opened) return false;
  Connection& connection = **opened;
  std::set<std::string> heard;
  bool gone = false;
  bool worked = false;
  next_sweep_ =
      std::max(next_sweep_, BootClock::now() + Millis(jitter_bits() % kSweepEvery.count()));
  while (!gone && !stop.stop_requested()) {
    if (!follow(connection, heard)) return worked;
    worked = true;
    if (BootClock::now() >= next_sweep_ && !sweep(connection)) return worked;
    deliver(connection, gone);  // last: statements read notifications too, and keep them
    const auto left = std::chrono::ceil<Millis>(next_sweep_ - BootClock::now());
    if (!gone) thread_.pause(std::clamp(left, Millis(1), kSweepEvery), stop, connection.socket());
  }
  return worked;
}

// Listens to the channels that are watched and not in `heard` yet, and leaves those that nobody
// watches any more. A watch that ends does not wake this thread: its channel is left when the
// thread next runs.
bool Listener::follow(Connection& connection, std::set<std::string>& heard) {
  std::string sql;  // the names are letters and digits only
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(channels_, [&](const auto& entry) { return !subscribers_->has(entry.second); });
    std::erase_if(heard, [&](const std::string& name) {
      if (channels_.contains(name)) return false;
      sql += "UNLISTEN " + name + ";";
      return true;
    });
    for (const auto& [name, channel] : channels_) {
      if (!heard.insert(name).second) continue;
      sql += "LISTEN " + name + ";";
      more = true;
    }
  }
  if (sql.empty()) return true;
  if (!connection.script(sql, BootClock::now() + settings_.apply_limit)) return false;
  if (more && !options_.drop_wakeups) subscribers_->wake_all();
  return true;
}

void Listener::deliver(Connection& connection, bool& gone) {
  std::vector<Connection::Notification> notifications;
  gone = !connection.receive(notifications);
  if (options_.drop_wakeups) return;
  std::map<std::string, std::vector<GrantId>> grants;
  for (auto& [name, payload] : notifications) {
    std::erase(payload, '-');
    const auto grant = parse_grant_id(payload);
    const std::lock_guard lock(mutex_);
    if (const auto it = channels_.find(name); grant && it != channels_.end()) {
      grants[it->second].push_back(*grant);
    }
  }
  for (const auto& [channel, woken] : grants) subscribers_->wake(channel, woken);
}

// One step of a sweep. An error of the statement only ends this sweep.
bool Listener::sweep(Connection& connection) {
  const Params params =
      bind(StatementId::sweep, {{"after", std::string_view(swept_to_)}, {"max_rows", kSweepRows}},
           options_.now ? options_.now() : TestClock{});
  const auto rows = connection.run(statement(StatementId::sweep), params,
                                   BootClock::now() + settings_.apply_limit);
  swept_to_ = rows && rows->size() == 1 ? std::string(rows->text(0, 0)) : std::string();
  const bool more = !swept_to_.empty();
  next_sweep_ = BootClock::now() +
                (more ? kSweepOn : kSweepEvery / 2 + Millis(jitter_bits() % kSweepEvery.count()));
  return connection.usable();
}

}  // namespace baton::store::postgres
