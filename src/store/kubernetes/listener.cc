#include "store/kubernetes/listener.h"

#include <algorithm>
#include <random>

#include "core/backoff.h"

namespace baton::store::kubernetes {
namespace {

constexpr std::uint64_t kBreakOdds = 4;

}  // namespace

Listener::~Listener() {
  thread_.request_stop();
  rest();
  if (thread_.joinable()) thread_.join();
}

void Listener::listen(std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  if (wanted_) return;
  wanted_ = true;
  version_ = std::max(version_, version);
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
  }
  signal_.notify_all();
}

void Listener::rest() {
  std::stop_source stream;
  {
    const std::lock_guard lock(mutex_);
    wanted_ = false;
    hears_ = false;
    stream = stream_;
  }
  stream.request_stop();
}

bool Listener::wait_until_wanted(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!signal_.wait(lock, stop, [&] { return wanted_; })) return false;
  stream_ = std::stop_source();
  return true;
}

void Listener::pause(Millis time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  signal_.wait_for(lock, stop, time, [&] { return !wanted_; });
}

void Listener::note_place(const WatchEvent& event) {
  const std::lock_guard lock(mutex_);
  if (event.kind == WatchEvent::Kind::gone) {
    version_ = 0;
  } else if (event.version != 0) {
    version_ = event.version;
  }
  hears_ = wanted_ && event.kind != WatchEvent::Kind::gone;
}

void Listener::follow(const std::stop_token& stop) {
  std::mt19937_64 random{std::random_device{}()};
  core::Backoff backoff(Millis(50), Millis(5000));
  while (wait_until_wanted(stop)) {
    bool heard = false;
    std::uint64_t version = 0;
    std::stop_token stream;
    {
      const std::lock_guard lock(mutex_);
      version = version_;
      stream = stream_.get_token();
    }
    const auto ended = api_.watch(
        version,
        [&](const WatchEvent& event) {
          heard = true;
          note_place(event);
          on_event_(event);
        },
        stream);
    hears_ = false;
    if (heard) backoff.reset();
    if (stream.stop_requested()) continue;
    // Of many clients some do it, each time others.
    if (ended && heard && random() % kBreakOdds == 0) on_break_();
    // Also after a stream that just ended: a server that ends them at once must not be hammered.
    const bool useless = !ended && ended.error().code == Code::unauthorized;
    pause(useless ? Millis(30'000) : backoff.next(random()), stop);
  }
}

}  // namespace baton::store::kubernetes
