#include "runtime/wait_hub.h"

#include <algorithm>
#include <utility>

#include "baton/name.h"
#include "runtime/timing.h"

namespace baton::runtime {
namespace {

std::string path_of(const std::string& key) {
  const auto name = parse_key(key);
  return name ? print_path(*name) : key;
}

std::string held_by(const Reply& reply) {
  if (reply.holders.empty()) return "others wait for it";
  const HolderInfo& first = reply.holders.front();
  std::string text =
      (first.released ? "released, but kept by the at-least-for time of " : "held by ") +
      (first.owner.empty() ? "somebody" : first.owner) + " (token " + std::to_string(first.token) +
      ")";
  if (reply.holders.size() > 1) {
    text += " and " + std::to_string(reply.holders.size() - 1) + " more";
  }
  return text;
}

Error busy_error(Code code, const Reply& reply, const Request& request) {
  return {.code = code,
          .message = path_of(request.targets[0].key) + " is busy: " + held_by(reply),
          .retryable = true,
          .retry_after = reply.retry_after};
}

// Superseded by another client, or by the acquire's own first try, if that was granted, its reply
// was lost, and the grant has expired since.
Error perhaps_superseded(const Error& error) {
  return {.code = Code::unavailable,
          .message = error.message + ", or this acquire was: a first try was not answered"};
}

// The lease has ended anyway, so the next waiter of the queue gets the lock.
bool successor_has_gone(const Request& undo, const Reply& reply) {
  return reply.outcome == Outcome::denied && !undo.to.empty();
}

}  // namespace

Millis ask_pause(const Reply& reply, const Request& acquire) {
  const Millis most = std::max(kAskFloor, std::min(kAskEvery, acquire.claim_within / 2));
  return std::clamp(reply.retry_after + Millis(1), kAskFloor, most);
}

Error error_of(const Reply& reply, const Request& request) {
  const std::string path = path_of(request.targets[0].key);
  switch (reply.outcome) {
    case Outcome::busy:
    case Outcome::queued: return busy_error(Code::busy, reply, request);
    case Outcome::superseded:
      return {.code = Code::superseded, .message = path + ": somebody was there before"};
    case Outcome::denied: return {.code = Code::denied, .message = path + ": " + reply.message};
    case Outcome::deadlock:
      return {.code = Code::deadlock,
              .message = path + ": another holder already waits for this one to let go"};
    case Outcome::invalid:
      return {.code = Code::bad_request, .message = path + ": " + reply.message};
    case Outcome::unsupported:
      return {.code = Code::unsupported, .message = path + ": " + reply.message};
    case Outcome::granted:
    case Outcome::done:
    case Outcome::lost: break;
  }
  return {.code = Code::lost,
          .message = path + (reply.message.empty() ? ": lost" : ": " + reply.message)};
}

WaitHub::WaitHub(LockStore& store, Clock& clock, OnStray stray)
    : store_(store),
      clock_(clock),
      stray_(std::move(stray)),
      apply_limit_(store.capabilities().apply_limit),
      thread_([this](const std::stop_token& stop) { loop(stop); }) {}

WaitHub::~WaitHub() { stop(); }

void WaitHub::stop() {
  thread_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    signalled_ = true;
    signal_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool WaitHub::on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

std::size_t WaitHub::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void WaitHub::wait(Request acquire, Deadline deadline, Instant from, bool queued,
                   std::stop_token stop, Error so_far, Then then) {
  const std::lock_guard lock(mutex_);
  const GrantId grant = acquire.grant;
  const Instant now = clock_.now();
  Waiting entry;
  entry.refresh_at = now + acquire.queue_ttl / 3;
  entry.acquire = std::move(acquire);
  entry.deadline = deadline;
  entry.then = std::move(then);
  entry.queued = queued;
  entry.ask_at = from;
  if (early_.erase(grant) > 0) entry.wake(now);
  if (so_far.in_doubt) entry.doubt();
  entry.last = std::move(so_far);
  if (stop.stop_possible()) {
    // Runs on the stopping thread, perhaps inside this call with the mutex held, so it takes no
    // lock. A notification between the hub's check and its wait is noticed at the hub's next look.
    entry.on_stop = std::make_unique<std::stop_callback<std::function<void()>>>(stop, [this] {
      signalled_ = true;
      signal_.notify_one();
    });
    entry.stop = std::move(stop);
  }
  waiting_.insert_or_assign(grant, std::move(entry));
  signalled_ = true;
  signal_.notify_one();
}

bool WaitHub::abandon(GrantId grant) {
  const std::lock_guard lock(mutex_);
  const auto it = waiting_.find(grant);
  if (it == waiting_.end()) return true;  // it ends at this moment
  it->second.abandoned = true;
  signalled_ = true;
  signal_.notify_one();
  return it->second.asking || it->second.in_doubt || it->second.noted;
}

void WaitHub::undo(Request request, Instant from, Instant until, Then then) {
  const std::lock_guard lock(mutex_);
  undo_.push_back({std::move(request), from, until, std::move(then)});
  signalled_ = true;
  signal_.notify_one();
}

void WaitHub::call(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      calls_.push_back(std::move(what));
      signalled_ = true;
      signal_.notify_one();
      return;
    }
  }
  what();
}

void WaitHub::wake(std::span<const GrantId> grants) {
  std::vector<GrantId> strays;
  {
    const std::lock_guard lock(mutex_);
    const Instant now = clock_.now();
    if (grants.empty()) {
      for (auto& [grant, waiting] : waiting_) {
        // The connection is back, but a request that was lost with it may still take effect.
        if (waiting.queued || !waiting.in_doubt) waiting.wake(now);
      }
    }
    for (const GrantId grant : grants) {
      if (const auto it = waiting_.find(grant); it != waiting_.end()) {
        it->second.wake(now);
        continue;
      }
      if (early_.size() >= kMaxRemembered) early_.clear();
      early_.insert(grant);
      strays.push_back(grant);
    }
    signalled_ = true;
  }
  signal_.notify_one();  // without the mutex, which the woken thread needs at once
  for (const GrantId grant : strays) stray_(grant);
}

Millis WaitHub::jitter(Millis time) {
  const auto quarter = std::max<std::int64_t>(1, time.count() / 4);
  return time - Millis(static_cast<std::int64_t>(random_()) % quarter);
}

void WaitHub::loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<Request> batch;
    std::vector<Undo> undoing;
    Finished finished;
    std::vector<std::function<void()>> calls;
    {
      std::unique_lock lock(mutex_);
      signalled_ = false;
      calls.swap(calls_);
      const Instant next = gather(clock_.now(), batch, undoing, finished);
      if (batch.empty() && finished.empty() && calls.empty()) {
        while (!signalled_ && !stop.stop_requested() && clock_.now() < next) {
          clock_.wait(lock, signal_, next);
        }
        continue;
      }
    }
    for (auto& call : calls) call();
    if (!batch.empty()) send(batch, undoing, finished);
    for (auto& [then, result] : finished) then(std::move(result));
  }
  close();
}

// Ends all waits: every callback is called, and every place in a queue is given up.
void WaitHub::close() {
  Finished finished;
  std::vector<Request> batch;
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    calls.swap(calls_);
    const Instant now = clock_.now();
    for (auto& [grant, waiting] : waiting_) {
      give_up(waiting, now);
      if (waiting.abandoned) continue;
      finished.emplace_back(
          std::move(waiting.then),
          waiting.end({.code = Code::cancelled, .message = "the client was closed"}));
    }
    waiting_.clear();
    for (Undo& undo : undo_) batch.push_back(std::move(undo.request));
    undo_.clear();
  }
  for (auto& call : calls) call();
  for (auto& [then, result] : finished) then(std::move(result));
  // One try: if it does not reach the store, the grants and waiters there expire.
  if (batch.empty()) return;
  const Instant limit = clock_.now() + kCloseTimeout;
  const auto replies = store_.apply(batch, limit);
  if (!replies) return;
  std::vector<Request> for_the_queue;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!successor_has_gone(batch[i], (*replies)[i])) continue;
    batch[i].to.clear();
    for_the_queue.push_back(std::move(batch[i]));
  }
  if (!for_the_queue.empty()) (void)store_.apply(for_the_queue, limit);
}

// Collects the requests to send now, ends the waits whose time is up, and returns when to look
// again.
Instant WaitHub::gather(Instant now, std::vector<Request>& batch, std::vector<Undo>& undoing,
                        Finished& finished) {
  Instant next = Instant::max();
  for (auto it = undo_.begin(); it != undo_.end();) {
    if (it->at > now || batch.size() >= kMaxBatch) {
      next = std::min(next, std::max(it->at, now));
      ++it;
      continue;
    }
    batch.push_back(it->request);
    undoing.push_back(std::move(*it));
    it = undo_.erase(it);
  }
  const bool together = somebody_asks(now);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Waiting& waiting = it->second;
    const bool stopped = waiting.stop.stop_requested();
    if (waiting.abandoned || stopped || waiting.deadline <= now) {
      give_up(waiting, now);
      if (stopped) waiting.last = {.code = Code::cancelled, .message = "the wait was cancelled"};
      if (!waiting.abandoned) {
        finished.emplace_back(std::move(waiting.then), waiting.end(std::move(waiting.last)));
      }
      it = waiting_.erase(it);
      continue;
    }
    const bool asks = waiting.ask_at <= now || (together && waiting.along_at <= now);
    if (asks && batch.size() < kMaxBatch) {
      batch.push_back(next_request(waiting, now));
    } else {
      next = std::min({next, std::max(waiting.ask_at, now), waiting.deadline});
    }
    ++it;
  }
  // give_up() may just have added one.
  for (const Undo& undo : undo_) next = std::min(next, undo.at);
  return next;
}

// Whether a waiter that is queued in the store and was not woken is due to ask.
bool WaitHub::somebody_asks(Instant now) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    const Waiting& waiting = entry.second;
    return waiting.queued && waiting.ask_at <= now && waiting.ask_at != Instant::min();
  });
}

Request WaitHub::next_request(Waiting& waiting, Instant now) const {
  waiting.asking = true;
  waiting.along_at = Instant::max();
  if (!waiting.queued) return waiting.acquire;
  Request claim;
  claim.verb = Verb::claim;
  claim.grant = waiting.acquire.grant;
  claim.targets = waiting.acquire.targets;
  claim.schema_version = waiting.acquire.schema_version;
  if (waiting.refresh_at <= now) {
    claim.queue_ttl = waiting.acquire.queue_ttl;
    waiting.refresh_at = now + waiting.acquire.queue_ttl / 3;
  }
  return claim;
}

void WaitHub::give_up(const Waiting& waiting, Instant from) {
  if (!waiting.queued && !waiting.in_doubt) return;
  Request cancel;
  cancel.verb = Verb::cancel;
  cancel.grant = waiting.acquire.grant;
  cancel.targets = waiting.acquire.targets;
  // An acquire in doubt may still reach the store after this cancel.
  if (!waiting.queued) cancel.tombstone_ttl = 2 * apply_limit_;
  undo_.push_back({std::move(cancel), from, from + waiting.acquire.ttl + apply_limit_});
}

void WaitHub::send(const std::vector<Request>& batch, std::vector<Undo>& undoing,
                   Finished& finished) {
  const Instant sent = clock_.now();
  auto replies = store_.apply(batch, sent + apply_limit_ + Millis(500));
  const std::lock_guard lock(mutex_);
  const Instant now = clock_.now();
  if (!replies) {
    for (Undo& undo : undoing) put_off(std::move(undo), now);
    const std::vector<Request> asked(batch.begin() + static_cast<std::ptrdiff_t>(undoing.size()),
                                     batch.end());
    return failed(asked, replies.error(), sent);
  }
  for (std::size_t i = 0; i < undoing.size(); ++i) {
    undone(std::move(undoing[i]), (*replies)[i], sent, now, finished);
  }
  for (std::size_t i = undoing.size(); i < batch.size(); ++i) {
    const auto it = waiting_.find(batch[i].grant);
    if (it == waiting_.end()) continue;
    process_reply(it->second, (*replies)[i], sent, now, finished);
    if (!it->second.then) waiting_.erase(it);
  }
}

void WaitHub::undone(Undo undo, Reply& reply, Instant sent, Instant now, Finished& finished) {
  if (reply.outcome == Outcome::busy) return put_off(std::move(undo), now);
  if (!successor_has_gone(undo.request, reply)) {
    if (undo.then) finished.emplace_back(std::move(undo.then), WaitResult{std::move(reply), sent});
    return;
  }
  undo.request.to.clear();
  undo.at = now;
  undo_.push_back(std::move(undo));
}

void WaitHub::put_off(Undo undo, Instant now) {
  if (undo.until <= now) return;
  undo.at = now + undo.backoff.next(random_());
  undo_.push_back(std::move(undo));
}

// Processes one reply. A waiter that is done has no `then` any more.
void WaitHub::process_reply(Waiting& waiting, Reply& reply, Instant sent, Instant now,
                            Finished& finished) {
  waiting.backoff.reset();
  waiting.asking = false;
  // Busy may mean that the store could not read the name, so it ends no doubt.
  if (reply.outcome != Outcome::busy) waiting.in_doubt = false;
  switch (reply.outcome) {
    case Outcome::granted:
      if (waiting.abandoned) {
        waiting.queued = true;
        give_up(waiting, now);
        waiting.then = nullptr;
        return;
      }
      finished.emplace_back(
          std::exchange(waiting.then, nullptr),
          WaitResult{std::move(reply), sent, waiting.asked, waiting.since_woken(now)});
      return;
    case Outcome::queued:
      waiting.queued = true;
      waiting.last = busy_error(Code::timed_out, reply, waiting.acquire);
      waiting.ask_at = now + jitter(ask_pause(reply, waiting.acquire));
      waiting.along_at = now + ask_pause(reply, waiting.acquire) * 3 / 4;
      waiting.asked = true;
      waiting.woken_at.reset();
      if (early_.erase(waiting.acquire.grant) > 0) waiting.wake(now);
      return;
    case Outcome::busy:
      if (waiting.acquire.queue_ttl > Millis(0)) {
        waiting.last = busy_error(Code::timed_out, reply, waiting.acquire);
        waiting.ask_at = now + jitter(ask_pause(reply, waiting.acquire));
        waiting.asked = true;
        waiting.woken_at.reset();
        return;
      }
      break;
    case Outcome::lost:
      // Its place in the queue expired, or its promotion passed on, while this process was held up:
      // queue again.
      waiting.queued = false;
      waiting.ask_at = now + jitter(kAskFloor);
      return;
    default: break;
  }
  if (!waiting.abandoned) {
    Error error = error_of(reply, waiting.acquire);
    if (reply.outcome == Outcome::superseded && waiting.noted) error = perhaps_superseded(error);
    finished.emplace_back(std::move(waiting.then), waiting.end(std::move(error)));
  }
  waiting.then = nullptr;
}

// The store call failed. A request that may still take effect is repeated only when it can no
// longer do so: a late request must not follow its own repetition.
void WaitHub::failed(const std::vector<Request>& batch, const Error& error, Instant sent) {
  const Instant now = clock_.now();
  for (const Request& request : batch) {
    const auto it = waiting_.find(request.grant);
    if (it == waiting_.end()) continue;
    Waiting& waiting = it->second;
    waiting.asking = false;
    // A store that could not be reached now does not end an earlier doubt.
    if (error.in_doubt) waiting.doubt();
    waiting.last = error;
    waiting.ask_at = now + waiting.backoff.next(random_());
    if (error.in_doubt) waiting.ask_at = std::max(waiting.ask_at, sent + apply_limit_);
  }
}

}  // namespace baton::runtime
