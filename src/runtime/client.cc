#include "runtime/client.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/apply.h"
#include "core/lock_table.h"
#include "core/trust.h"

namespace baton {
namespace {

using runtime::error_of;
using runtime::Grant;
using runtime::HeldLease;
using runtime::Won;

Error bad_request(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

std::string default_owner() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

Error too_many() {
  return {.code = Code::unavailable,
          .message = "too many acquires wait in this client",
          .retryable = true};
}

Request undoing(const Request& acquire) {
  Request cancel;
  cancel.verb = Verb::cancel;
  cancel.grant = acquire.grant;
  cancel.asks = acquire.asks;
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
      batcher_(*store_, can_),
      keeper_(*store_, *clock_, observer_.get()),
      hub_(*store_, *clock_, [this](GrantId grant) { keeper_.poke(grant); }),
      watch_(store_->watch(channel_, hub_)) {}

LockClient::Core::~Core() {
  watch_.reset();
  hub_.stop();
  keeper_.stop();
}

void LockClient::Core::destroy(Core* core) {
  if (core->keeper_.on_own_thread() || core->hub_.on_own_thread()) {
    std::thread([core] { delete core; }).detach();
  } else {
    delete core;
  }
}

std::shared_ptr<LockClient::Core> LockClient::Core::make(std::shared_ptr<LockStore> store,
                                                         ClientOptions options, Policy policy) {
  return {new Core(std::move(store), std::move(options), std::move(policy)), &Core::destroy};
}

Result<Reply> LockClient::Core::submit(Request& request, Millis timeout) {
  return batcher_.submit(request, clock_->now() + timeout);
}

// Everything that can be refused without asking the store is refused here.
Result<Request> LockClient::Core::prepare(const std::vector<LockName>& set,
                                          const AcquireOptions& options) {
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
  auto asks = asks_for(policy_, set, options.mode);
  if (!asks) return asks.error();
  Request request;
  request.verb = Verb::acquire;
  request.grant = new_grant_id();
  request.asks = std::move(*asks);
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
    request.ticket = core::ticket_for(options.ttl);
    request.handoff = core::handoff_for(options.ttl);
  }
  if (auto beyond = core::beyond(can_, request)) {
    return Error{.code = Code::unsupported, .message = std::move(*beyond)};
  }
  return request;
}

Result<Lease> LockClient::Core::lease(const std::vector<LockName>& set, const Request& request,
                                      Reply reply, Instant sent) {
  Grant grant{.id = request.grant,
              .names = set,
              .asks = request.asks,
              .tokens = std::move(reply.tokens),
              .note = std::move(reply.note),
              .ttl = request.ttl,
              .schema_version = request.schema_version,
              .sent = sent};
  auto held = std::make_shared<HeldLease>(*this, std::move(grant));
  // Not in the constructor: the Keeper's threads may ask for a share of it at once.
  keeper_.keep(*held);
  HeldLease& shown = *held;
  Lease lease(shared_from_this(), std::move(held));
  if (!lease.valid()) {
    // The reply took longer than the lease lasts. Letting it go is all that can be done with it.
    return Error{.code = Code::unavailable,
                 .message = "the store answered too late for a TTL of " +
                            std::to_string(request.ttl.count()) + " ms",
                 .retryable = true};
  }
  if (observer_ != nullptr) shown.show();
  return lease;
}

Result<Lease> LockClient::Core::acquire(std::vector<LockName> set, const AcquireOptions& options) {
  Course course;
  if (observer_ == nullptr || set.empty()) return ask(set, options, course);
  const Instant from = clock_->now();
  auto result = ask(set, options, course);
  observer_->acquired({.name = set.front(),
                       .error = result ? nullptr : &result.error(),
                       .ttl = options.ttl,
                       .took = clock_->now() - from,
                       .waited = course.waited,
                       .handover = course.handover});
  return result;
}

Result<Lease> LockClient::Core::ask(const std::vector<LockName>& set, const AcquireOptions& options,
                                    Course& course) {
  auto request = prepare(set, options);
  if (!request) return request.error();
  const Instant sent = clock_->now();
  const Instant deadline = sent + options.wait;
  auto reply = batcher_.submit(*request, sent + can_.apply_limit + Millis(500));
  const bool waits = options.wait > Millis(0);
  if (!reply) {
    const Error& error = reply.error();
    // Until then the request may still take effect; after it, repeating or undoing it is safe.
    const Instant settled = error.in_doubt ? sent + can_.apply_limit : clock_->now() + Millis(50);
    if (waits && error.retryable && settled < deadline) {
      return wait(set, *request, deadline, settled, error, false, options.stop, course);
    }
    if (error.in_doubt) {
      Request cancel = undoing(*request);
      cancel.tombstone = 2 * can_.apply_limit;
      hub_.undo(std::move(cancel), clock_->now(), sent + request->ttl + can_.apply_limit);
    }
    return error;
  }
  if (reply->outcome == Outcome::granted) return lease(set, *request, std::move(*reply), sent);
  const bool kept_out = reply->outcome == Outcome::busy && waits;
  if (reply->outcome != Outcome::queued && !kept_out) return error_of(*reply, *request);
  Error busy = error_of(*reply, *request);
  busy.code = Code::timed_out;
  const Instant again = clock_->now() + runtime::ask_pause(*reply, *request);
  return wait(set, *request, deadline, again, std::move(busy), !kept_out, options.stop, course);
}

namespace {

// Counts a waiter for as long as it waits.
class Waits {
 public:
  Waits(ClientObserver* observer, const LockName& name) : observer_(observer), name_(name) {
    if (observer_ != nullptr) observer_->waiting(name_, 1);
  }
  ~Waits() {
    if (observer_ != nullptr) observer_->waiting(name_, -1);
  }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

 private:
  ClientObserver* const observer_;
  const LockName& name_;
};

// Where a blocked caller and the hub meet.
struct Meeting {
  std::mutex mutex;
  std::condition_variable signal;
  std::optional<Result<Won>> result;
  bool stopped = false;
  bool left = false;  // the caller is gone: a lock that is granted now must be given back
};

}  // namespace

Result<Lease> LockClient::Core::wait(const std::vector<LockName>& set, const Request& request,
                                     Instant deadline, Instant from, Error so_far, bool queued,
                                     const std::stop_token& stop, Course& course) {
  if (hub_.size() >= max_waiting_) return too_many();
  course.waited = true;
  const Waits waits(observer_.get(), set.front());
  const auto meeting = std::make_shared<Meeting>();
  Error unanswered = so_far;
  hub_.wait(request, deadline, from, queued, {}, std::move(so_far),
            [this, meeting, request](Result<Won> result) {
              const std::lock_guard lock(meeting->mutex);
              if (meeting->left && result) {
                hub_.undo(undoing(request), clock_->now(), clock_->now() + request.ttl);
              }
              meeting->result.emplace(std::move(result));
              meeting->signal.notify_all();
            });
  const std::stop_callback on_stop(stop, [meeting] {
    const std::lock_guard lock(meeting->mutex);
    meeting->stopped = true;
    meeting->signal.notify_all();
  });
  std::unique_lock lock(meeting->mutex);
  // The hub ends the wait at the deadline; if it is stuck in the store then, we do not wait for it.
  const Instant patience = deadline + Millis(200);
  while (!meeting->result && !meeting->stopped && clock_->now() < patience) {
    clock_->wait(lock, meeting->signal, patience);
  }
  if (!meeting->result) {
    meeting->left = true;
    const bool stopped = meeting->stopped;
    lock.unlock();
    hub_.abandon(request.grant);
    if (stopped) return Error{.code = Code::cancelled, .message = "the wait was cancelled"};
    unanswered.code = Code::timed_out;
    unanswered.message += "; the wait ended while the store did not answer";
    unanswered.retryable = true;
    unanswered.in_doubt = false;  // what may still come of it is undone
    return unanswered;
  }
  if (!*meeting->result) return meeting->result->error();
  Won& won = **meeting->result;
  course.handover = won.handover;
  return lease(set, request, std::move(won.reply), won.sent);
}

// Tells the observer before `then`, also if the client is gone by that time.
std::function<void(Result<Lease>)> LockClient::Core::told(
    LockName name, Millis ttl, std::shared_ptr<const Course> course,
    std::function<void(Result<Lease>)> then) const {
  return [observer = observer_, clock = clock_, from = clock_->now(), name = std::move(name), ttl,
          course = std::move(course), then = std::move(then)](Result<Lease> result) {
    observer->acquired({.name = name,
                        .error = result ? nullptr : &result.error(),
                        .ttl = ttl,
                        .took = clock->now() - from,
                        .waited = course->waited,
                        .handover = course->handover});
    then(std::move(result));
  };
}

void LockClient::Core::acquire_async(std::vector<LockName> set, AcquireOptions options,
                                     std::function<void(Result<Lease>)> then) {
  std::shared_ptr<Course> course;
  if (observer_ != nullptr && !set.empty()) {
    course = std::make_shared<Course>();
    then = told(set.front(), options.ttl, course, std::move(then));
  }
  auto request = prepare(set, options);
  if (!request) return then(request.error());
  if (hub_.size() >= max_waiting_) return then(too_many());
  const Request asked = *request;
  const Instant now = clock_->now();
  // A try has no time to wait, but the store may take its time to answer.
  const Instant deadline =
      now + (options.wait > Millis(0) ? options.wait : can_.apply_limit + Millis(500));
  Error unanswered{
      .code = Code::timed_out, .message = "the store did not answer in time", .retryable = true};
  if (course != nullptr) observer_->waiting(set.front(), 1);
  hub_.wait(std::move(*request), deadline, now, false, std::move(options.stop),
            std::move(unanswered),
            [self = weak_from_this(), observer = observer_, course, set = std::move(set), asked,
             then = std::move(then)](Result<Won> result) {
              if (course != nullptr) observer->waiting(set.front(), -1);
              const auto core = self.lock();
              if (!result) return then(result.error());
              if (!core) return then(Error{.code = Code::cancelled, .message = "closed"});
              if (course != nullptr) *course = {result->waited, result->handover};
              then(core->lease(set, asked, std::move(result->reply), result->sent));
            });
}

}  // namespace baton
