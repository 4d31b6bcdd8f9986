#include "election/election_loop.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/bad_request.h"
#include "core/permanent_error.h"
#include "election/orders.h"
#include "election/waiting.h"

namespace baton::election {
namespace {

constexpr Millis kFirstBackoff{1'000};
constexpr Millis kMostBackoff{30'000};

}  // namespace

ElectionLoop::ElectionLoop(LockClient locks, std::string_view election, ElectorOptions options)
    : locks_(std::move(locks)),
      election_(election),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      lock_(election_lock(election_, options_.region)),
      monitor_(locks_, options_, clock_),
      health_(options_, clock_, [this] { health_changed(); }),
      ranking_(locks_, options_, clock_),
      after_failure_(kFirstBackoff, kMostBackoff),
      after_refusal_(options_.retry_interval, std::max(kMostBackoff, options_.retry_interval)) {}

Result<void> ElectionLoop::check() const {
  if (!lock_) return lock_.error();
  if (options_.retry_interval <= Millis(0) || options_.look_interval <= Millis(0)) {
    return bad_request("the retry and look intervals of an elector are above zero");
  }
  if (options_.grace < Millis(0) || options_.cooldown < Millis(0)) {
    return bad_request("the grace and the cooldown of an elector are not negative");
  }
  if (options_.health_interval < Millis(0)) {
    return bad_request("the health interval of an elector is not negative");
  }
  return ranking_.check();
}

void ElectionLoop::report(const Error& error) const {
  if (options_.on_error) options_.on_error(error);
}

// Says which thread runs the loop, and that none does any more.
class ElectionLoop::Running {
 public:
  explicit Running(ElectionLoop& loop) : loop_(loop) {
    const std::lock_guard lock(loop_.mutex_);
    loop_.expected_ = false;
    first_ = loop_.runner_ == std::thread::id{};
    if (first_) loop_.runner_ = std::this_thread::get_id();
  }
  ~Running() {
    if (!first_) return;
    const std::lock_guard lock(loop_.mutex_);
    loop_.runner_ = {};
    loop_.signal_.notify_all();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  [[nodiscard]] bool first() const { return first_; }

 private:
  ElectionLoop& loop_;
  bool first_ = false;
};

Result<void> ElectionLoop::run(const Elector::Work& work, const std::stop_token& stop) {
  if (auto ok = check(); !ok) return ok;
  const Running running(*this);
  if (!running.first()) return bad_request("the elector of '" + election_ + "' already runs");
  const std::stop_callback on_stop(stop, [this] { request_stop(); });
  monitor_.start(*lock_);
  if (!options_.never_lead) {
    health_.start();
    ranking_.start(*lock_);
  }
  auto outcome = run_terms(work);
  ranking_.stop();
  health_.stop();
  monitor_.stop();
  return outcome;
}

void ElectionLoop::expect_run() {
  const std::lock_guard lock(mutex_);
  expected_ = true;
}

Result<void> ElectionLoop::run_terms(const Elector::Work& work) {
  while (true) {
    wait_until_fit();
    if (stopping()) break;
    auto lease = acquire_lease();
    if (lease) {
      after_refusal_.reset();
      if (give_way(*lease)) continue;
      lead(std::move(*lease), work);
      pause(next_pause_);
      continue;
    }
    const Error& error = lease.error();
    if (stopping()) break;
    if (error.code == Code::cancelled) continue;  // not fit to lead any more
    if (error.code == Code::unsupported && has_queue_) {
      has_queue_ = false;
      continue;
    }
    if (is_permanent(error)) return error;
    if (error.code == Code::timed_out) continue;  // a wait ends after a day; so we wait again
    if (error.code != Code::busy) report(error);
    pause(pause_before_retry(error));
  }
  return {};
}

void ElectionLoop::wait_until_fit() {
  std::unique_lock lock(mutex_);
  while (!stopping() && (options_.never_lead || !health_.fit())) {
    clock_.wait(lock, signal_, Instant::max());
  }
}

// A candidate that is sick leaves the queue, a leader ends its term.
void ElectionLoop::health_changed() {
  std::shared_ptr<Term> term;
  std::stop_source standing;
  {
    const std::lock_guard lock(mutex_);
    signal_.notify_all();
    if (health_.fit()) return;
    term = term_;
    standing = standing_;
  }
  standing.request_stop();
  if (term != nullptr) term->end(Ending::unfit);
}

Result<Lease> ElectionLoop::acquire_lease() {
  std::stop_source standing;
  {
    const std::lock_guard lock(mutex_);
    standing_ = standing;
  }
  const std::stop_callback on_stop(stop_.get_token(), [&] { standing.request_stop(); });
  if (!health_.fit()) standing.request_stop();  // since we looked
  return locks_.acquire(*lock_, {.ttl = options_.ttl,
                                 .wait = has_queue_ ? kMaxWait : Millis(0),
                                 .metadata = ranking_.metadata(),
                                 .stop = standing.get_token()});
}

// True if the lock went to a better candidate, or is lost, before the work has begun.
bool ElectionLoop::give_way(Lease& lease) {
  const auto better = ranking_.outranked_by();
  return better && (lease.release({.to = *better}) || !lease.valid());
}

// A store that lacks a schema or refuses our rights may do so for long, and each try is reported.
Millis ElectionLoop::pause_before_retry(const Error& error) {
  if (error.code == Code::bad_store || error.code == Code::unauthorized) {
    return after_refusal_.next(random_());
  }
  after_refusal_.reset();
  const auto quarter = std::max<std::int64_t>(1, options_.retry_interval.count() / 4);
  return options_.retry_interval - Millis(static_cast<std::int64_t>(random_()) % quarter);
}

void ElectionLoop::lead(Lease lease, const Elector::Work& work) {
  const auto term =
      std::make_shared<Term>(election_, std::move(lease), clock_, [self = weak_from_this()] {
        if (const auto us = self.lock()) {
          us->monitor_.term_ended();
        }
      });
  {
    const std::lock_guard lock(mutex_);
    term_ = term;
  }
  monitor_.began(term);
  ranking_.leads();
  {
    // Gone before the lease is released: from then on nobody ends this term.
    const std::stop_callback on_loss(term->lease().lost(), [&] { term->end(Ending::lost); });
    const std::stop_callback on_stop(stop_.get_token(), [&] { term->end(Ending::stopped); });
    if (!health_.fit()) term->end(Ending::unfit);
    // Stopped meanwhile, or paused for so long that it is lost already.
    if (!term->ending()) {
      Leadership leadership(term);
      do_work(*term, leadership, work);
    }
    term->end(Ending::returned);
  }
  monitor_.work_returned();
  const bool revoked = hand_over(*term);
  next_pause_ = pause_after(*term->ending(), revoked);
  const std::lock_guard lock(mutex_);
  term_.reset();
}

void ElectionLoop::do_work(Term& term, Leadership& leadership, const Elector::Work& work) {
  const auto failed = [&](const std::string& what) {
    term.end(Ending::failed);
    if (term.began() + kMostBackoff < clock_.now()) after_failure_.reset();
    report({.code = Code::unavailable,
            .message = "the work of leader '" + election_ + "' failed in term " +
                       std::to_string(term.lease().token()) + ": " + what,
            .retryable = true});
  };
  try {
    if (options_.fence_first) {
      if (auto fenced = options_.fence_first(leadership.tokens()); !fenced) {
        return failed("the fence: " + fenced.error().message);
      }
    }
    work(leadership, term.stop_token());
    after_failure_.reset();
  } catch (const std::exception& problem) {
    failed(problem.what());
  } catch (...) {
    failed("an exception that is no std::exception");
  }
}

// Releases the lock, to the successor if there is one. If the lease was lost, that acknowledges the
// loss, so that the next leader need not wait for the TTL. True if somebody had revoked the lease.
bool ElectionLoop::hand_over(Term& term) {
  std::string successor = term.successor();
  bool revoked = false;
  if (term.ending() == Ending::lost) {
    const auto holder = revocation(term);
    revoked = holder.has_value();
    if (holder) successor = successor_in(holder->reason).value_or("");
  }
  if (revoked || term.ending() == Ending::resigned || term.ending() == Ending::transferred) {
    ranking_.was_asked_to_go();
  }
  if (successor.empty() && (term.ending() != Ending::lost || revoked)) {
    if (auto best = ranking_.best_waiting()) successor = std::move(best->node);
  }
  if (!successor.empty()) {
    if (auto released = term.lease().release({.to = successor})) return revoked;
  }
  // Without a successor, or with one that has gone meanwhile. A release that fails is repeated in
  // the background; the lock ends by its TTL at the latest.
  (void)term.lease().release();
  return revoked;
}

std::optional<HolderInfo> ElectionLoop::revocation(const Term& term) {
  const auto info = locks_.get(*lock_, kLookTimeout);
  if (!info) return std::nullopt;
  for (const HolderInfo& holder : info->holders) {
    if (holder.grant == term.lease().grant() && holder.revoked) return holder;
  }
  return std::nullopt;
}

Millis ElectionLoop::pause_after(Ending ending, bool revoked) {
  switch (ending) {
    case Ending::stopped: return Millis(0);
    case Ending::failed: return std::max(after_failure_.next(random_()), cooldown());
    case Ending::lost: return revoked ? cooldown() : Millis(0);
    case Ending::returned:
    case Ending::resigned:
    case Ending::unfit:
    case Ending::transferred: break;
  }
  return cooldown();
}

// In a store without a queue, every other candidate must get a try before this replica tries again.
Millis ElectionLoop::cooldown() const {
  return has_queue_ ? options_.cooldown : std::max(options_.cooldown, 2 * options_.retry_interval);
}

void ElectionLoop::pause(Millis time) {
  const Instant until = clock_.now() + time;
  std::unique_lock lock(mutex_);
  while (!stopping() && clock_.now() < until) clock_.wait(lock, signal_, until);
}

void ElectionLoop::request_stop() {
  stop_.request_stop();
  const std::lock_guard lock(mutex_);
  signal_.notify_all();
}

bool ElectionLoop::wait_until_over(Instant limit) {
  std::unique_lock lock(mutex_);
  if (runner_ == std::this_thread::get_id()) return false;
  const auto over = [&] { return runner_ == std::thread::id{} && !expected_; };
  while (!over() && clock_.now() < limit) clock_.wait(lock, signal_, limit);
  return over();
}

std::shared_ptr<Term> ElectionLoop::term() const {
  const std::lock_guard lock(mutex_);
  return term_;
}

bool ElectionLoop::is_leader() const {
  const auto now = term();
  return now != nullptr && now->valid();
}

Result<std::optional<Leader>> ElectionLoop::leader() {
  if (!lock_) return lock_.error();
  return leader_of(locks_, *lock_);
}

bool ElectionLoop::resign() {
  const auto now = term();
  if (now == nullptr || !now->valid()) return false;
  now->end(Ending::resigned);
  return true;
}

Result<void> ElectionLoop::transfer(const std::string& node) {
  const auto now = term();
  if (now == nullptr || !now->valid()) {
    return Error{.code = Code::lost, .message = "this replica does not lead '" + election_ + "'"};
  }
  if (auto ok = can_transfer(locks_); !ok) return ok;
  const auto info = locks_.get(*lock_);
  if (!info) return info.error();
  if (auto ok = waits(*info, node); !ok) return ok;
  now->end(Ending::transferred, node);
  return {};
}

}  // namespace baton::election
