#include "baton/node.h"

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "baton/version.h"
#include "core/backoff.h"
#include "node/registry.h"
#include "node/wall_time.h"

namespace baton {
namespace {

// How often a note says that its node is still there: only for nodes that are gone, see registry.h.
constexpr Millis kSayEvery = std::chrono::hours(1);

std::string host_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return host.data();
}

// Whether asking again may help. What a person has to change first does not.
bool may_pass(const Error& error) {
  switch (error.code) {
    case Code::busy:
    case Code::timed_out:
    case Code::lost:
    case Code::unavailable: return true;
    default: return error.retryable;
  }
}

}  // namespace

class Node::Impl {
 public:
  Impl(LockClient locks, NodeOptions options)
      : locks_(std::move(locks)),
        options_(std::move(options)),
        clock_(options_.clock != nullptr ? *options_.clock : system_clock()) {
    if (options_.id.empty()) options_.id = locks_.owner();
    if (options_.version.empty()) options_.version = std::string(version);
    if (!options_.wall_clock) options_.wall_clock = &std::chrono::system_clock::now;
    started_ = options_.wall_clock();
    metadata_ = options_.metadata;
    metadata_["host"] = host_name();
    metadata_["pid"] = std::to_string(getpid());
    metadata_["start"] = node::print_time(started_);
    metadata_["version"] = options_.version;
    if (!options_.role.empty()) metadata_["role"] = options_.role;
  }

  ~Impl() { leave(); }
  [[nodiscard]] bool inherited() const { return locks_.inherited(); }

  // Once on the caller's thread, so that what is wrong for good is said at once.
  Result<void> start() {
    if (auto taken = take(); !taken && !may_pass(taken.error())) return taken.error();
    thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
    return {};
  }

  void leave() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    poke();
    thread_.join();
  }

  [[nodiscard]] Token token() const {
    const std::lock_guard lock(mutex_);
    return lease_.valid_token();
  }

  [[nodiscard]] const NodeOptions& options() const { return options_; }
  [[nodiscard]] WallTime started() const { return started_; }

 private:
  enum class Told { nothing, alive, not_alive };

  // A lease that may not be there.
  struct Held {
    Lease lease;
    [[nodiscard]] Token valid_token() const { return lease && lease.valid() ? lease.token() : 0; }
  };

  [[nodiscard]] std::int64_t seconds() const {
    return node::to_millis(options_.wall_clock()) / 1000;
  }

  Result<void> take() {
    const LockName name{.subject = std::string(kNodeSubject),
                        .predicate = std::string(kNodePredicate),
                        .resources = {options_.id},
                        .region = options_.region};
    auto lease = locks_.try_acquire(
        name, {.ttl = options_.ttl,
               .metadata = metadata_,
               .note = {.ordinal = seconds(), .text = node::print_metadata(metadata_)}});
    if (!lease) return lease.error();
    {
      const std::lock_guard lock(mutex_);
      std::swap(lease_.lease, *lease);
    }
    // The old one, if any, goes when this returns: that may take a while, so not under the mutex.
    tell(true, "");
    return {};
  }

  void tell(bool alive, const std::string& why) {
    if (std::exchange(told_, alive ? Told::alive : Told::not_alive) ==
        (alive ? Told::alive : Told::not_alive)) {
      return;
    }
    if (options_.on_change) options_.on_change(alive, why);
  }

  void poke() {
    const std::lock_guard lock(mutex_);
    poked_ = true;
    signal_.notify_all();
  }

  void pause(Millis time) {
    std::unique_lock lock(mutex_);
    const Instant until = clock_.now() + time;
    while (!poked_ && clock_.now() < until) clock_.wait(lock, signal_, until);
    poked_ = false;
  }

  void loop(const std::stop_token& stop) {
    core::Backoff backoff(Millis(100), Millis(2'000));
    bool tidied = false;
    while (!stop.stop_requested()) {
      if (token() != 0) {
        if (!std::exchange(tidied, true)) {
          node::forget_gone(locks_, options_.region, options_.wall_clock());
        }
        backoff.reset();
        hold(stop);
        continue;
      }
      if (auto taken = take(); !taken) {
        tell(false, taken.error().message);
        pause(backoff.next(locks_.owner().size()));
      }
    }
    if (lease_.lease) (void)lease_.lease.release({.note = {.ordinal = 0, .text = ""}});
  }

  // Until the lease is lost or the node is to leave.
  void hold(const std::stop_token& stop) {
    const std::stop_callback on_loss(lease_.lease.lost(), [this] { poke(); });
    while (!stop.stop_requested() && token() != 0) {
      pause(kSayEvery);
      if (stop.stop_requested() || token() == 0) break;
      (void)lease_.lease.set_note({.ordinal = seconds()});
    }
    if (!stop.stop_requested()) tell(false, lease_.lease.why_lost());
  }

  LockClient locks_;
  NodeOptions options_;
  Clock& clock_;
  WallTime started_;
  Metadata metadata_;
  mutable std::mutex mutex_;
  std::condition_variable signal_;
  bool poked_ = false;
  Held lease_;  // replaced only by the thread, under the mutex
  Told told_ = Told::nothing;
  std::jthread thread_;
};

Result<Node> Node::join(LockClient locks, NodeOptions options) {
  auto impl = std::make_unique<Impl>(std::move(locks), std::move(options));
  if (auto started = impl->start(); !started) return started.error();
  return Node(std::move(impl));
}

Node::Node(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() {
  // In a forked child the thread is not there, and the registration is the parent's.
  if (impl_ != nullptr && impl_->inherited()) (void)impl_.release();
}

const std::string& Node::id() const { return impl_->options().id; }
const std::string& Node::role() const { return impl_->options().role; }
WallTime Node::started() const { return impl_->started(); }
bool Node::alive() const { return impl_->token() != 0; }
Token Node::token() const { return impl_->token(); }
void Node::leave() { impl_->leave(); }

}  // namespace baton
