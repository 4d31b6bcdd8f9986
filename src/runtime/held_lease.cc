#include "runtime/held_lease.h"

#include <algorithm>

#include "core/fence.h"
#include "core/trust.h"
#include "runtime/client.h"
#include "runtime/deadline.h"
#include "runtime/inherited.h"

namespace baton::runtime {
namespace {

Result<void> check_note(const NoteChange& change) {
  if (!change.text || change.text->size() <= kMaxNoteBytes) return {};
  return Error{.code = Code::bad_request,
               .message = "a note has at most " + std::to_string(kMaxNoteBytes) + " bytes"};
}

}  // namespace

HeldLease::HeldLease(LockClient::Core& client, Grant grant)
    : client_(client),
      id_(grant.id),
      names_(std::move(grant.names)),
      key_(grant.targets.front().key),
      metadata_(std::move(grant.metadata)),
      ttl_(grant.ttl),
      schema_version_(grant.schema_version),
      granted_at_(grant.sent),
      trusted_until_(core::trusted_until(grant.sent, grant.ttl).time_since_epoch().count()),
      targets_(std::move(grant.targets)),
      tokens_(std::move(grant.tokens)),
      note_(std::move(grant.note)),
      sent_(grant.sent) {}

HeldLease::~HeldLease() { client_.keeper().drop(*this); }

Instant HeldLease::trusted_until() const {
  return Instant(Instant::duration(trusted_until_.load(std::memory_order_acquire)));
}

bool HeldLease::inherited() const { return client_.inherited(); }

bool HeldLease::valid() const {
  return !inherited() && !ended_.load(std::memory_order_acquire) &&
         client_.clock().now() < trusted_until();
}

Millis HeldLease::remaining() const {
  if (inherited() || ended_.load(std::memory_order_acquire)) return Millis(0);
  const auto left = std::chrono::floor<Millis>(trusted_until() - client_.clock().now());
  return std::max(left, Millis(0));
}

// In a forked child the parent's callbacks must not run, so the child gets a token of its own.
std::stop_token HeldLease::lost() const {
  if (!inherited()) return stop_.get_token();
  std::stop_source fired;
  fired.request_stop();
  return fired.get_token();
}

std::string HeldLease::why_lost() const {
  if (inherited()) return kLeaseOfParent;
  const std::lock_guard lock(mutex_);
  return why_;
}

Error HeldLease::lost_error() const {
  return {.code = Code::lost, .message = "the lease is lost: " + why_lost()};
}

// By then the grant has expired in the store, whatever happens.
Instant HeldLease::over() const { return trusted_until() + core::margin(ttl_); }

Mode HeldLease::mode() const {
  if (inherited()) return Mode::X;
  const std::lock_guard lock(mutex_);
  return targets_.front().mode;
}

std::vector<FenceToken> HeldLease::tokens() const {
  if (inherited()) return {};
  const std::lock_guard lock(mutex_);
  return core::fence_tokens(targets_, tokens_);
}

// The index in targets_, of which only the modes ever change.
std::size_t HeldLease::place_of(const LockName& name) const {
  const std::string key = key_of(client_.policy(), name);
  const auto found =
      std::find_if(targets_.begin(), targets_.end(), [&](const Target& a) { return a.key == key; });
  return static_cast<std::size_t>(found - targets_.begin());
}

Token HeldLease::token() const {
  if (inherited()) return 0;
  const std::lock_guard lock(mutex_);
  return tokens_.front();
}

Note HeldLease::note() const {
  if (inherited()) return {};
  const std::lock_guard lock(mutex_);
  return note_;
}

Request HeldLease::request(Verb verb) const {
  Request request;
  request.verb = verb;
  request.grant = id_;
  request.schema_version = schema_version_;
  const std::lock_guard lock(mutex_);
  request.targets = targets_;
  return request;
}

Request HeldLease::renewal() const { return request(Verb::renew); }

// Only moves the time forward: the reply of a later request may have arrived first. A lease that
// has ended stays ended, because valid() checks ended_ first.
void HeldLease::renewed(Instant sent) {
  const auto until = core::trusted_until(sent, ttl_).time_since_epoch().count();
  auto known = trusted_until_.load(std::memory_order_acquire);
  while (known < until && !trusted_until_.compare_exchange_weak(known, until)) {
  }
}

bool HeldLease::end(const std::string& why) {
  if (ended_.exchange(true)) return false;
  {
    const std::lock_guard lock(mutex_);
    why_ = why;
  }
  stop_.request_stop();
  poke();
  return true;
}

void HeldLease::lose(Loss loss, const std::string& why) {
  const bool ended = end(why);
  if (ended) lost_ = true;
  if (ended && observer() != nullptr) observer()->lost({name(), loss});
}

ClientObserver* HeldLease::observer() const {
  return shown_.load(std::memory_order_acquire) ? client_.observer() : nullptr;
}

void HeldLease::poke() {
  const std::lock_guard lock(mutex_);
  ++pokes_;
  poked_.notify_all();
}

Result<void> HeldLease::set_note(NoteChange change, Millis timeout) {
  if (auto ok = check_note(change); !ok) return ok;
  if (!valid()) return lost_error();
  Request renew = request(Verb::renew);
  renew.change = std::move(change);
  const Instant sent = client_.clock().now();
  const auto reply = client_.submit(renew, deadline_after(sent, timeout));
  if (!reply) return reply.error();
  if (reply->outcome != Outcome::granted) {
    if (reply->outcome == Outcome::lost) lose(Loss::refused, reply->message);
    return error_of(*reply, renew);
  }
  client_.keeper().renewed(*this, sent);
  const std::lock_guard lock(mutex_);
  if (renew.change.ordinal) note_.ordinal = *renew.change.ordinal;
  if (renew.change.text) note_.text = *renew.change.text;
  return {};
}

Result<void> HeldLease::begin_release(const NoteChange& final_note) {
  if (auto ok = check_note(final_note); !ok) return ok;
  if (released_.exchange(true)) {
    return Error{.code = Code::lost, .message = "the lease was released before"};
  }
  return {};
}

Result<void> HeldLease::release(const ReleaseOptions& options) {
  if (inherited()) return lost_error();
  Instant at = client_.clock().now();
  const Deadline deadline = deadline_after(at, options.timeout);
  if (!options.to.empty()) {
    if (auto ok = check_successor(options.to, deadline); !ok) return ok;
    at = client_.clock().now();
  }
  if (auto ok = begin_release(options.note); !ok) return ok;
  auto released = give_back(options, deadline);
  if (observer() == nullptr) return released;
  tell(released, at);
  return released;
}

void HeldLease::release_async(NoteChange final_note, std::function<void(Result<void>)> then) {
  if (inherited()) {
    if (then) then(lost_error());
    return;
  }
  if (auto ok = begin_release(final_note); !ok) {
    if (then) client_.hub().call([then = std::move(then), why = ok.error()] { then(why); });
    return;
  }
  const Instant at = client_.clock().now();
  client_.async_batcher().send(last_request(std::move(final_note)),
                               [self = shared_from_this(), at, then = std::move(then)](
                                   Request release, Result<Reply> reply, Instant /*sent*/) {
                                 auto released = self->given_back(release, reply);
                                 if (self->observer() != nullptr) self->tell(released, at);
                                 if (!then) return;
                                 if (self->client_.on_own_thread())
                                   return then(std::move(released));
                                 self->client_.hub().call([then, released] { then(released); });
                               });
}

void HeldLease::let_go() {
  if (released_.load(std::memory_order_acquire)) return;
  if (client_.on_own_thread()) return release_async({}, nullptr);
  (void)release({});
}

// The overlap counts from over(): before that the store cannot have granted the lock to another.
void HeldLease::tell(const Result<void>& released, Instant at) const {
  const auto overlap = at - over();
  observer()->released({.name = name(),
                        .error = released ? nullptr : &released.error(),
                        .held = at - granted_at_,
                        .overlap = std::max(overlap, Instant::duration(0))});
}

// Ends the lease before the request is sent, so that no work goes on under a lock that is being
// released.
Request HeldLease::last_request(NoteChange final_note) {
  if (!valid()) lost_ = true;
  end("released");
  client_.keeper().drop(*this);
  Request release = request(Verb::release);
  release.change = std::move(final_note);
  return release;
}

Result<void> HeldLease::give_back(const ReleaseOptions& options, Deadline deadline) {
  Request release = last_request(options.note);
  release.to = options.to;
  auto reply = client_.submit(release, deadline);
  if (reply && reply->outcome == Outcome::denied) {
    // The successor has left the queue since check_successor(). The lease has ended anyway, so
    // release it to the queue.
    release.to.clear();
    reply = client_.submit(release, deadline);
  }
  return given_back(release, reply);
}

Result<void> HeldLease::given_back(Request& release, Result<Reply>& reply) {
  if (reply && reply->outcome == Outcome::busy) {
    reply = Error{.code = Code::unavailable,
                  .message = "the store could not touch " + print_path(name()) + " just now",
                  .retryable = true};
  }
  if (!reply) {
    // The hub repeats the release with its note, so both may still be written.
    client_.hub().undo(std::move(release), client_.clock().now(), over());
    Error error = reply.error();
    error.in_doubt = true;
    return error;
  }
  if (reply->outcome != Outcome::done) return error_of(*reply, release);
  return {};
}

bool HeldLease::was_lost() const { return lost_ || (!released_ && !valid()); }

Result<void> HeldLease::finish() {
  if (inherited()) return lost_error();
  if (!released_ && !was_lost()) {
    // Another error is no failure here: no other client had the lock during the work, and the hub
    // repeats the release.
    auto released = release({});
    if (!released && released.error().code == Code::lost) return released;
  }
  if (was_lost()) return lost_error();
  return {};
}

Result<void> HeldLease::check_successor(const std::string& successor, Deadline deadline) const {
  if (!client_.can().transfer || names_.size() > 1 || targets_.size() > 1) {
    return Error{.code = Code::unsupported, .message = "only a single lock can be handed over"};
  }
  Request look;
  look.verb = Verb::get;
  look.targets = {{key(), Mode::X}};
  const auto reply = client_.submit(look, deadline);
  if (!reply) return reply.error();
  if (!reply->info) return error_of(*reply, look);
  const auto& waiters = reply->info->waiters;
  if (std::none_of(waiters.begin(), waiters.end(),
                   [&](const WaiterInfo& w) { return w.owner == successor; })) {
    return Error{.code = Code::denied, .message = "nobody of '" + successor + "' waits for it"};
  }
  return {};
}

}  // namespace baton::runtime
