#include "inbox/handler_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton::inbox {
namespace {

constexpr std::chrono::seconds kGrace{1};
constexpr Millis kLongestWait{100};

}  // namespace

void HandlerThread::work(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return state.busy || state.ended; });
    if (!state.busy) return;
    const Job job = std::move(state.job);
    lock.unlock();
    job();
    lock.lock();
    state.busy = false;
    state.changed.notify_all();
  }
}

void HandlerThread::begin() {
  if (state_ != nullptr) return;
  const auto state = std::make_shared<State>();
  thread_ = std::thread([state] { work(*state); });  // or it throws
  state_ = state;
}

void HandlerThread::end() {
  if (state_ == nullptr) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
    state_->changed.notify_all();
  }
  thread_.join();
  state_.reset();
}

bool HandlerThread::run(Job job, const HandlerLimit& limit, const std::function<void()>& overrun) {
  begin();
  const auto state = state_;  // outlives the lock
  std::unique_lock lock(state->mutex);
  state->job = std::move(job);
  state->busy = true;
  state->changed.notify_all();
  bool told = false;
  std::chrono::steady_clock::time_point give_up;
  while (state->busy) {
    // A limit that is set later cannot come earlier than the next look.
    const auto now = std::chrono::steady_clock::now();
    const auto by = limit.get();
    const auto left = by ? *by - BootClock::now() : BootClock::duration(kLongestWait);
    if (!told && by && left <= left.zero()) {
      told = true;
      give_up = now + kGrace;
      lock.unlock();
      overrun();
      lock.lock();
      continue;
    }
    if (told && now >= give_up) {
      state->ended = true;  // when it returns
      state_.reset();
      thread_.detach();
      return false;
    }
    const auto wait = told ? BootClock::duration(kLongestWait) : left;
    state->changed.wait_for(lock, std::min<BootClock::duration>(wait, kLongestWait));
  }
  return true;
}

}  // namespace baton::inbox
