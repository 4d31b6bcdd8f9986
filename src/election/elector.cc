#include "baton/elector.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "election/election_loop.h"

namespace baton {
namespace {

// How much longer than the grace a destructor waits for the work, and for the store to be told.
constexpr Millis kCloseTimeout{5'000};

void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  signal.wait(lock, stop, [] { return false; });
}

}  // namespace

Elector::Elector(LockClient locks, std::string_view name, ElectorOptions options)
    : loop_(std::make_shared<election::ElectionLoop>(std::move(locks), name, std::move(options))) {}

Elector::~Elector() {
  if (loop_->inherited()) {
    // A forked child: the thread is not here, and what it held is the parent's.
    new auto(std::move(loop_));
    new auto(std::move(thread_));
    return;
  }
  loop_->request_stop();
  const Instant limit = loop_->clock().now() + loop_->options().grace + kCloseTimeout;
  const bool over = loop_->wait_until_over(limit);
  if (!thread_.joinable()) return;
  if (over) {
    thread_.join();
  } else {
    thread_.detach();  // its work does not listen; it has a share in all that it needs
  }
}

Result<void> Elector::run(const Work& work, const std::stop_token& stop) {
  const auto loop = loop_;
  return loop->run(work, stop);
}

Result<void> Elector::start(ElectorCallbacks callbacks) {
  if (auto ok = loop_->check(); !ok) return ok;
  auto work = [callbacks = std::move(callbacks)](Leadership& term, const std::stop_token& stop) {
    if (callbacks.on_elected) callbacks.on_elected(term);
    wait_for(stop);
    if (callbacks.on_lost) callbacks.on_lost(term, term.why_ending());
  };
  if (thread_.joinable()) {
    return Error{.code = Code::bad_request, .message = "the elector was started before"};
  }
  loop_->expect_run();
  thread_ = std::thread([loop = loop_, work = std::move(work)] {
    if (auto ended = loop->run(work, {}); !ended) loop->report(ended.error());
  });
  return {};
}

void Elector::stop() {
  loop_->request_stop();
  loop_->wait_until_over(Instant::max());
}

bool Elector::is_leader() const { return loop_->is_leader(); }
Result<std::optional<Leader>> Elector::leader() { return loop_->leader(); }
bool Elector::resign() { return loop_->resign(); }
Result<void> Elector::transfer(const std::string& node) { return loop_->transfer(node); }

}  // namespace baton
