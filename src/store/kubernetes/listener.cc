#include "store/kubernetes/listener.h"

#include <condition_variable>
#include <random>

#include "core/backoff.h"

namespace baton::store::kubernetes {
namespace {

constexpr std::uint64_t kBreakOdds = 4;

}  // namespace

Listener::~Listener() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Listener::need() {
  std::call_once(started_, [this] {
    thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
  });
}

void Listener::pause(Millis time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

void Listener::follow(const std::stop_token& stop) {
  std::mt19937_64 random{std::random_device{}()};
  core::Backoff backoff(Millis(50), Millis(5000));
  std::uint64_t version = 0;
  while (!stop.stop_requested()) {
    bool heard = false;
    const auto ended = api_.watch(
        version,
        [&](const WatchEvent& event) {
          heard = true;
          hears_ = event.kind != WatchEvent::Kind::gone;
          if (event.kind == WatchEvent::Kind::gone) {
            version = 0;
          } else if (event.version != 0) {
            version = event.version;
          }
          on_event_(event);
        },
        stop);
    hears_ = false;
    // Of many clients some do it, each time others.
    if (ended && heard && !stop.stop_requested() && random() % kBreakOdds == 0) on_break_();
    if (heard) backoff.reset();
    // Also after a stream that just ended: a server that ends them at once must not be hammered.
    const bool useless = !ended && ended.error().code == Code::unauthorized;
    pause(useless ? Millis(30'000) : backoff.next(random()), stop);
  }
}

}  // namespace baton::store::kubernetes
