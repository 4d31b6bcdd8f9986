#include "runtime/client.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/apply.h"
#include "core/bad_request.h"
#include "core/lock_table.h"
#include "core/trust.h"
#include "runtime/deadline.h"
#include "runtime/inherited.h"
#include "runtime/timing.h"

namespace baton {
namespace {

using runtime::AcquireTrace;
using runtime::AsyncAcquire;
using runtime::error_of;
using runtime::Grant;
using runtime::HeldLease;
using runtime::WaitResult;

std::string default_owner() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

Error too_many(bool in_doubt) {
  return {
      .code = Code::unavailable,
      .message =
          "too many acquires wait in this client: wait for some of them first, or open it with a "
          "larger max_waiting",
      .retryable = true,
      .in_doubt = in_doubt};
}

Error stopped_waiting(bool in_doubt) {
  return {.code = Code::cancelled, .message = "the wait was cancelled", .in_doubt = in_doubt};
}

// For an acquire that was granted while the client closed.
Error closed() {
  return {.code = Code::cancelled, .message = "the client was closed", .in_doubt = true};
}

// Of a grant whose reply took longer than the lease lasts. A note that came with it is written.
Error answered_too_late(Millis ttl) {
  return {
      .code = Code::unavailable,
      .message = "the store answered too late for a TTL of " + std::to_string(ttl.count()) + " ms",
      .retryable = true,
      .in_doubt = true};
}

// Whether an acquire that was answered too late may be asked for anew, with another grant. One with
// a note may not: the first one has written it, and would be in the way of the second.
bool may_ask_anew(const AcquireOptions& options, Instant now, Instant deadline) {
  return now < deadline && !options.stop.stop_requested() && options.note.empty() &&
         !options.if_ordinal_below;
}

Request undoing(const Request& acquire) {
  Request cancel;
  cancel.verb = Verb::cancel;
  cancel.grant = acquire.grant;
  cancel.targets = acquire.targets;
  return cancel;
}

Result<void> check_options(const AcquireOptions& options, const Capabilities& can) {
  if (options.ttl < can.min_ttl || options.ttl > kMaxTtl) {
    return bad_request("a TTL is from " + std::to_string(can.min_ttl.count()) +
                       " ms to 24 h, not " + std::to_string(options.ttl.count()) + " ms");
  }
  if (options.wait < Millis(0) || options.wait > kMaxWait) {
    return bad_request("a wait is from zero to 24 h");
  }
  if (options.at_least_for < Millis(0) || options.at_least_for > kMaxTtl) {
    return bad_request("at-least-for is from zero to 24 h");
  }
  if (options.note.text && options.note.text->size() > kMaxNoteBytes) {
    return bad_request("a note has at most " + std::to_string(kMaxNoteBytes) + " bytes");
  }
  if (!is_mode(options.mode)) return bad_request("unknown mode");
  if (std::find(can.modes.begin(), can.modes.end(), options.mode) == can.modes.end()) {
    return Error{.code = Code::unsupported,
                 .message = "this store has no mode " + std::string(long_name(options.mode))};
  }
  return {};
}

}  // namespace

LockClient::Core::Core(std::shared_ptr<LockStore> store, ClientOptions options, Policy policy)
    : store_(std::move(store)),
      clock_(options.clock != nullptr ? options.clock : &system_clock()),
      can_(store_->capabilities()),
      policy_(std::move(policy)),
      owner_(options.owner.empty() ? default_owner() : std::move(options.owner)),
      channel_(to_string(new_grant_id())),
      max_waiting_(options.max_waiting),
      observer_(std::move(options.observer)),
      batcher_(*store_, *clock_, can_),
      keeper_(*store_, *clock_, observer_.get()),
      hub_(*store_, *clock_, [this](GrantId grant) { keeper_.poke(grant); }),
      async_batcher_(*store_, *clock_, can_),
      watch_(store_->watch(channel_, hub_)) {}

LockClient::Core::~Core() {
  watch_.reset();
  async_batcher_.stop();
  hub_.stop();
  keeper_.stop();
}

bool LockClient::Core::on_own_thread() const {
  return async_batcher_.on_own_thread() || hub_.on_own_thread() || keeper_.on_own_thread();
}

void LockClient::Core::destroy(Core* core) {
  if (core->inherited()) return runtime::keep_for_ever({core, [](Core*) {}});
  struct Closing {
    std::mutex mutex;
    std::condition_variable signal;
    bool over = false;
  };
  Clock& clock = *core->clock_;
  const Instant limit = clock.now() + runtime::kCloseTimeout;
  const bool own = core->on_own_thread();
  const auto closing_state = std::make_shared<Closing>();
  std::thread closing([core, closing_state] {
    delete core;
    const std::lock_guard lock(closing_state->mutex);
    closing_state->over = true;
    closing_state->signal.notify_all();
  });
  if (own) return closing.detach();
  std::unique_lock lock(closing_state->mutex);
  while (!closing_state->over && clock.now() < limit)
    clock.wait(lock, closing_state->signal, limit);
  const bool over = closing_state->over;
  lock.unlock();
  if (over) return closing.join();
  closing.detach();
}

std::shared_ptr<LockClient::Core> LockClient::Core::make(std::shared_ptr<LockStore> store,
                                                         ClientOptions options, Policy policy) {
  return {new Core(std::move(store), std::move(options), std::move(policy)), &Core::destroy};
}

Result<Reply> LockClient::Core::submit(Request& request, Deadline deadline) {
  Instant sent{};
  return batcher_.submit(request, deadline, sent);
}

// Checks everything that can be refused without asking the store.
Result<Request> LockClient::Core::prepare(const std::vector<LockName>& set,
                                          const AcquireOptions& options) {
  if (inherited()) return runtime::client_of_parent();
  if (set.empty()) return bad_request("name at least one lock");
  if (auto ok = check_options(options, can_); !ok) return ok.error();
  if (policy_.draining) {
    return Error{.code = Code::denied,
                 .message = "the schema is being changed: try again when it is done",
                 .retryable = true};
  }
  for (const LockName& name : set) {
    if (auto ok = validate(name); !ok) return ok.error();
    if (name.region == kReservedRegion) {
      return Error{.code = Code::bad_name, .message = "the region BATON is Baton's own"};
    }
    if (policy_.version == 0) continue;
    if (auto ok = check(policy_, name, options.mode, options.ttl, options.metadata); !ok) {
      return ok.error();
    }
  }
  auto targets = targets_for(policy_, set, options.mode);
  if (!targets) return targets.error();
  Request request;
  request.verb = Verb::acquire;
  request.grant = new_grant_id();
  request.targets = std::move(*targets);
  request.predicate = set.front().predicate;
  request.owner = owner_;
  request.channel = channel_;
  request.metadata = options.metadata;
  request.ttl = options.ttl;
  request.at_least_for = options.at_least_for;
  request.if_ordinal_below = options.if_ordinal_below;
  request.change = options.note;
  request.schema_version = policy_.version;
  if (options.wait > Millis(0)) {
    request.queue_ttl = core::queue_ttl_for(options.ttl);
    request.claim_within = core::claim_within_for(options.ttl);
  }
  if (auto beyond = core::beyond(can_, request)) {
    return Error{.code = Code::unsupported, .message = std::move(*beyond)};
  }
  return request;
}

std::optional<Lease> LockClient::Core::lease(std::vector<LockName>& set, Request& request,
                                             Reply& reply, Instant sent) {
  Grant grant{.id = request.grant,
              .names = std::move(set),
              .targets = std::move(request.targets),
              .tokens = std::move(reply.tokens),
              .note = std::move(reply.note),
              .metadata = std::move(request.metadata),
              .ttl = request.ttl,
              .schema_version = request.schema_version,
              .sent = sent};
  auto held = std::make_shared<HeldLease>(*this, std::move(grant));
  // Not in the constructor: the Keeper's threads may call shared_from_this() at once.
  keeper_.keep(*held);
  HeldLease& shown = *held;
  Lease lease(shared_from_this(), std::move(held));
  if (!lease.valid()) {
    // The reply took longer than the lease lasts, so the lease is of no use. Release it without
    // making the caller wait for that.
    set = shown.names();
    lease.release_async();
    return std::nullopt;
  }
  if (observer_ != nullptr) shown.show();
  return lease;
}

Result<Lease> LockClient::Core::acquire(std::vector<LockName> set, const AcquireOptions& options) {
  AcquireTrace trace;
  if (observer_ == nullptr || set.empty()) return ask(std::move(set), options, trace);
  const LockName name = set.front();
  const Instant from = clock_->now();
  auto result = ask(std::move(set), options, trace);
  observer_->acquired({.name = name,
                       .error = result ? nullptr : &result.error(),
                       .ttl = options.ttl,
                       .took = clock_->now() - from,
                       .waited = trace.waited,
                       .handover = trace.handover});
  return result;
}

Result<Lease> LockClient::Core::ask(std::vector<LockName> set, const AcquireOptions& options,
                                    AcquireTrace& trace) {
  const Instant deadline = clock_->now() + options.wait;
  while (true) {
    auto request = prepare(set, options);
    if (!request) return request.error();
    if (options.stop.stop_requested()) return stopped_waiting(false);
    auto granted = win(set.front(), *request, deadline, options.stop, trace);
    if (!granted) return granted.error();
    if (auto held = lease(set, *request, granted->reply, granted->sent)) return std::move(*held);
    if (!may_ask_anew(options, clock_->now(), deadline)) return answered_too_late(options.ttl);
  }
}

Result<WaitResult> LockClient::Core::win(const LockName& name, Request& request, Instant deadline,
                                         const std::stop_token& stop, AcquireTrace& trace) {
  const Instant asked = clock_->now();
  Instant sent = asked;
  auto reply = batcher_.submit(request, asked + request_limit(), sent);
  if (reply && reply->outcome == Outcome::granted) return WaitResult{std::move(*reply), sent};
  auto plan = not_granted(request, reply, sent, deadline);
  if (!plan) return plan.error();
  return wait(name, request, deadline, std::move(*plan), stop, trace);
}

Result<LockClient::Core::RetryPlan> LockClient::Core::not_granted(const Request& request,
                                                                  const Result<Reply>& reply,
                                                                  Instant sent, Deadline deadline) {
  const bool waits = request.queue_ttl > Millis(0);
  if (!reply) {
    const Error& error = reply.error();
    // Before this instant the request may still take effect; then it is safe to repeat or undo it.
    const Instant safe_at = error.in_doubt ? sent + can_.apply_limit : clock_->now() + Millis(50);
    if (waits && error.retryable && safe_at < deadline) {
      return RetryPlan{.until = safe_at, .so_far = error};
    }
    if (error.in_doubt) take_back(request, true);
    return error;
  }
  const bool kept_out = reply->outcome == Outcome::busy && waits;
  if (reply->outcome != Outcome::queued && !kept_out) return error_of(*reply, request);
  Error busy = error_of(*reply, request);
  busy.code = Code::timed_out;
  return RetryPlan{.until = clock_->now() + runtime::ask_pause(*reply, request),
                   .queued = !kept_out,
                   .so_far = std::move(busy)};
}

// Undoes an acquire. If it is in doubt, the request may still reach the store after the cancel, so
// the cancel leaves a tombstone.
void LockClient::Core::take_back(const Request& acquire, bool in_doubt) {
  Request cancel = undoing(acquire);
  if (in_doubt) cancel.tombstone_ttl = 2 * can_.apply_limit;
  const Instant now = clock_->now();
  hub_.undo(std::move(cancel), now, now + acquire.ttl + can_.apply_limit);
}

bool LockClient::Core::is_full() const {
  return hub_.size() + async_batcher_.size() >= max_waiting_;
}

namespace {

// Counts a waiter for as long as it waits.
class WaitingCount {
 public:
  WaitingCount(std::shared_ptr<ClientObserver> observer, const LockName& name)
      : observer_(std::move(observer)), name_(observer_ != nullptr ? name : LockName{}) {
    if (observer_ != nullptr) observer_->waiting(name_, 1);
  }
  ~WaitingCount() {
    if (observer_ != nullptr) observer_->waiting(name_, -1);
  }
  WaitingCount(const WaitingCount&) = delete;
  WaitingCount& operator=(const WaitingCount&) = delete;

 private:
  const std::shared_ptr<ClientObserver> observer_;
  const LockName name_;
};

// Shared by a blocked caller and the wait hub.
struct WaitSlot {
  std::mutex mutex;
  std::condition_variable signal;
  std::optional<Result<WaitResult>> result;
  bool stopped = false;
  bool left = false;  // the caller is gone: a lock that is granted now must be given back
};

}  // namespace

Result<WaitResult> LockClient::Core::wait(const LockName& name, const Request& request,
                                          Instant deadline, RetryPlan plan,
                                          const std::stop_token& stop, AcquireTrace& trace) {
  if (is_full()) {
    if (plan.queued || plan.so_far.in_doubt) take_back(request, plan.so_far.in_doubt);
    return too_many(plan.so_far.in_doubt);
  }
  trace.waited = true;
  const WaitingCount waits(observer_, name);
  const auto slot = std::make_shared<WaitSlot>();
  Error unanswered = plan.so_far;
  hub_.wait(request, deadline, plan.until, plan.queued, {}, std::move(plan.so_far),
            [this, slot, request](Result<WaitResult> result) {
              const std::lock_guard lock(slot->mutex);
              if (slot->left && result) {
                hub_.undo(undoing(request), clock_->now(), clock_->now() + request.ttl);
              }
              slot->result.emplace(std::move(result));
              slot->signal.notify_all();
            });
  const std::stop_callback on_stop(stop, [slot] {
    const std::lock_guard lock(slot->mutex);
    slot->stopped = true;
    slot->signal.notify_all();
  });
  std::unique_lock lock(slot->mutex);
  // The hub ends the wait at the deadline, unless it is inside a slow store call: do not wait for
  // that.
  const Instant patience = deadline + Millis(200);
  while (!slot->result && !slot->stopped && clock_->now() < patience) {
    clock_->wait(lock, slot->signal, patience);
  }
  if (!slot->result) {
    slot->left = true;
    const bool stopped = slot->stopped;
    lock.unlock();
    // If the acquire is granted after all, the hub releases the grant; its note stays written.
    const bool in_doubt = hub_.abandon(request.grant);
    if (stopped) return stopped_waiting(in_doubt);
    unanswered.code = Code::timed_out;
    unanswered.message += "; the wait ended while the store did not answer";
    unanswered.retryable = true;
    unanswered.in_doubt = in_doubt;
    return unanswered;
  }
  if (*slot->result) trace.handover = (*slot->result)->handover;
  return std::move(*slot->result);
}

void LockClient::Core::acquire_async(std::vector<LockName> set, AcquireOptions options,
                                     std::function<void(Result<Lease>)> then) {
  const auto pending = std::make_shared<AsyncAcquire>(AsyncAcquire{.set = std::move(set),
                                                                   .options = std::move(options),
                                                                   .then = std::move(then),
                                                                   .observer = observer_,
                                                                   .clock = clock_});
  // Not on this thread, whose caller may hold a mutex that the callback takes; but a forked child
  // has no other thread.
  const auto refuse = [&](Error why) {
    if (inherited()) return pending->finish(std::move(why));
    hub_.call([pending, why = std::move(why)] { pending->finish(why); });
  };
  auto request = prepare(pending->set, pending->options);
  if (!request) return refuse(request.error());
  if (pending->options.stop.stop_requested()) return refuse(stopped_waiting(false));
  if (is_full()) return refuse(too_many(false));
  send(pending, std::move(*request));
}

void LockClient::Core::send(const std::shared_ptr<AsyncAcquire>& pending, Request request) {
  async_batcher_.send(std::move(request),
                      [this, pending](Request& asked, Result<Reply>& reply, Instant sent) {
                        answered(pending, asked, reply, sent);
                      });
}

// On a thread of the AsyncBatcher, or of the caller if the AsyncBatcher has none. This object still
// exists, but it may be closing: then weak_from_this() gives nothing.
void LockClient::Core::answered(const std::shared_ptr<AsyncAcquire>& pending, Request& request,
                                Result<Reply>& reply, Instant sent) {
  const auto self = weak_from_this().lock();
  if (reply && reply->outcome == Outcome::granted) {
    if (self != nullptr) {
      return granted(pending, request, *reply, sent);
    }
    hub_.undo(undoing(request), clock_->now(), sent + request.ttl);
    return pending->finish(closed());
  }
  auto plan = not_granted(request, reply, sent, pending->asked + pending->options.wait);
  if (!plan && !on_own_thread()) {
    return hub_.call([pending, why = plan.error()] { pending->finish(why); });
  }
  if (!plan) return pending->finish(plan.error());
  wait_in_background(pending, std::move(request), std::move(*plan));
}

void LockClient::Core::granted(const std::shared_ptr<AsyncAcquire>& pending, Request& request,
                               Reply& reply, Instant sent) {
  auto set = pending->take_set();
  if (auto held = lease(set, request, reply, sent)) return pending->finish(std::move(*held));
  pending->set = std::move(set);
  const AcquireOptions& options = pending->options;
  if (!may_ask_anew(options, clock_->now(), pending->asked + options.wait)) {
    return pending->finish(answered_too_late(options.ttl));
  }
  auto anew = prepare(pending->set, options);
  if (!anew) return pending->finish(anew.error());
  send(pending, std::move(*anew));
}

void LockClient::Core::wait_in_background(const std::shared_ptr<AsyncAcquire>& pending,
                                          Request request, RetryPlan plan) {
  pending->trace.waited = true;
  auto waits = std::make_shared<WaitingCount>(observer_, pending->set.front());
  Request asked = request;
  hub_.wait(std::move(request), pending->asked + pending->options.wait, plan.until, plan.queued,
            pending->options.stop, std::move(plan.so_far),
            [self = weak_from_this(), pending, waits = std::move(waits),
             asked](Result<WaitResult> result) mutable {
              waits.reset();
              if (!result) return pending->finish(result.error());
              const auto core = self.lock();
              if (!core) return pending->finish(closed());
              pending->trace.handover = result->handover;
              core->granted(pending, asked, result->reply, result->sent);
            });
}

}  // namespace baton
