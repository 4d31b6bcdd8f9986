#include "policy/apply_policy.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/lock_table.h"
#include "policy/validate.h"

namespace baton::policy {
namespace {

constexpr Millis kTtl{30'000};
constexpr Millis kRenewEvery{5'000};
constexpr Millis kLookEvery{250};
constexpr Millis kCallLimit{10'000};
constexpr int kWriteTries = 3;
constexpr std::size_t kShown = 100;  // locks in the way, per subject

Error refuse(Code code, std::string message) {
  return {.code = code, .message = std::move(message), .retryable = code == Code::busy};
}

Result<Policy> read_note(const Note& note) {
  if (note == Note{}) return Policy{};
  auto policy = from_stored(note.text);
  if (!policy) return policy;
  if (policy->version != note.ordinal) {
    return refuse(Code::bad_store,
                  "the store's policy and its version do not match; apply it again");
  }
  return policy;
}

// The lock on the policy, while it is being changed.
class SchemaLock {
 public:
  SchemaLock(LockStore& store, Clock& clock, std::string owner)
      : store_(store), clock_(clock), owner_(std::move(owner)) {}
  ~SchemaLock() {
    if (held_) (void)send(request(Verb::release));
  }
  SchemaLock(const SchemaLock&) = delete;
  SchemaLock& operator=(const SchemaLock&) = delete;

  // Gives the note as it is.
  Result<Note> take() {
    Request ask = request(Verb::acquire);
    ask.ttl = kTtl;
    ask.predicate = "applying";
    ask.owner = owner_;
    auto reply = send(ask);
    if (!reply) return reply.error();
    if (reply->outcome == Outcome::busy) {
      const auto& holders = reply->holders;
      return refuse(Code::busy, "another policy change is running" +
                                    (holders.empty() ? "" : " (" + holders[0].owner + ")") +
                                    "; try again when it is done");
    }
    if (reply->outcome != Outcome::granted) return unexpected(*reply);
    held_ = true;
    renewed_ = clock_.now();
    return reply->note;
  }

  // Durable when it returns. Tried again when its fate is unknown: to write the same twice is
  // harmless, because nobody else can write in between.
  Result<void> write(std::int64_t ordinal, std::string text) {
    Request ask = request(Verb::renew);
    ask.change.ordinal = ordinal;
    ask.change.text = std::move(text);
    Result<Reply> reply = send(ask);
    for (int i = 1; i < kWriteTries && !reply && reply.error().in_doubt; ++i) reply = send(ask);
    return judge(reply);
  }

  Result<void> keep() {
    if (clock_.now() - renewed_ < kRenewEvery) return {};
    return judge(send(request(Verb::renew)));
  }

 private:
  [[nodiscard]] Request request(Verb verb) const {
    Request made;
    made.verb = verb;
    made.grant = grant_;
    made.targets = {{std::string(core::kSchemaKey), Mode::X}};
    return made;
  }

  Result<Reply> send(const Request& ask) {
    auto replies = store_.apply({&ask, 1}, clock_.now() + kCallLimit);
    if (!replies) return replies.error();
    return std::move(replies->front());
  }

  Result<void> judge(const Result<Reply>& reply) {
    if (!reply) return reply.error();
    if (reply->outcome == Outcome::granted) {
      renewed_ = clock_.now();
      return {};
    }
    held_ = reply->outcome != Outcome::lost;
    return unexpected(*reply);
  }

  static Error unexpected(const Reply& reply) {
    if (reply.outcome == Outcome::lost) {
      return refuse(Code::lost, "lost the lock on the policy while changing it (" + reply.message +
                                    "); look at 'baton policy show' and apply it again");
    }
    return refuse(Code::unsupported,
                  "the store does not take the policy: " + std::string(to_string(reply.outcome)) +
                      " " + reply.message);
  }

  LockStore& store_;
  Clock& clock_;
  std::string owner_;
  GrantId grant_ = new_grant_id();
  Instant renewed_{};
  bool held_ = false;
};

class Drain {
 public:
  Drain(LockStore& store, Clock& clock, SchemaLock& lock, const ApplyPolicyOptions& options)
      : store_(store), clock_(clock), lock_(lock), options_(options) {}

  // An acquire that read the version before it changed may show up as late as the store lets it:
  // before that, to see nobody says nothing.
  Result<void> wait_until_free(const std::vector<std::string>& subjects) {
    const Instant start = clock_.now();
    const Instant all_shown = start + store_.capabilities().apply_limit;
    while (true) {
      const bool sees_all = clock_.now() >= all_shown;
      auto busy = look(subjects);
      if (!busy) return busy.error();
      if (busy->empty() && sees_all) return {};
      const auto waited = std::chrono::floor<Millis>(clock_.now() - start);
      if (!busy->empty() && waited >= options_.timeout) return too_long(*busy);
      if (options_.stop.stop_requested()) return refuse(Code::cancelled, "stopped");
      if (!busy->empty() && options_.progress) options_.progress({*busy, waited});
      if (auto ok = lock_.keep(); !ok) return ok;
      const Instant limit = busy->empty() ? all_shown : start + options_.timeout;
      pause(std::min<Instant>(clock_.now() + kLookEvery, limit));
    }
  }

 private:
  Result<std::vector<LockInfo>> look(const std::vector<std::string>& subjects) {
    std::vector<LockInfo> found;
    for (const auto& subject : subjects) {
      Query query;
      query.subject = subject;
      query.limit = kShown;
      auto page = store_.find(query, clock_.now() + kCallLimit);
      if (!page) return page.error();
      for (auto& info : page->items) {
        if (!info.holders.empty() || info.waiting > 0) found.push_back(std::move(info));
      }
    }
    return found;
  }

  Error too_long(const std::vector<LockInfo>& busy) const {
    const LockInfo& first = busy.front();
    const auto name = parse_key(first.key);
    std::string who = name ? print_path(*name) : first.key;
    if (!first.holders.empty()) who += " held by " + first.holders[0].owner;
    return refuse(Code::timed_out, std::to_string(busy.size()) +
                                       " locks of changed subjects are still there, such as " +
                                       who + "; wait, break them, or give a longer --timeout");
  }

  void pause(Instant until) {
    // Before the lock: a stop that has been requested is called back here and now.
    const std::stop_callback wake(options_.stop, [this] {
      const std::lock_guard held(mutex_);
      signal_.notify_all();
    });
    std::unique_lock lock(mutex_);
    if (!options_.stop.stop_requested()) clock_.wait(lock, signal_, until);
  }

  LockStore& store_;
  Clock& clock_;
  SchemaLock& lock_;
  const ApplyPolicyOptions& options_;
  std::mutex mutex_;
  std::condition_variable signal_;
};

std::string stored_as(Policy policy, std::int64_t version, bool draining) {
  policy.version = version;
  policy.draining = draining;
  return to_stored(policy);
}

bool same_content(Policy a, const Policy& b) {
  a.version = b.version;
  return a == b;
}

// The policy in the store when the change begins.
struct Before {
  Note note;
  Policy policy;
  bool readable = true;

  // The fleet goes on with the policy it has, under the version it knows. A change that was
  // interrupted while draining left nobody that knows its version, so that one gets a new one.
  [[nodiscard]] Note to_put_back() const {
    if (!policy.draining) return note;
    return {note.ordinal + 1, stored_as(policy, note.ordinal + 1, false)};
  }

  [[nodiscard]] std::vector<std::string> to_drain(const Policy& wanted) const {
    if (!readable) return {std::string()};
    return changed_conflicts(policy, wanted);
  }
};

Result<Before> read_before(Note note, bool replace) {
  Before before{.note = std::move(note)};
  auto policy = read_note(before.note);
  before.readable = policy.has_value();
  if (policy) {
    before.policy = std::move(*policy);
  } else if (!replace) {
    return policy.error();
  }
  return before;
}

Error put_back(SchemaLock& lock, const Before& before, Error why) {
  const Note old = before.to_put_back();
  if (auto ok = lock.write(old.ordinal, old.text); !ok) {
    why.message += "; and the old policy could not be put back (" + ok.error().message +
                   "): nobody can acquire until a policy is applied";
    return why;
  }
  why.message += ". The old policy stays in force";
  return why;
}

// From `before` to nobody holding anything whose conflicts change. Gives the version it left.
Result<std::int64_t> drain(SchemaLock& lock, const Before& before, Drain& holders,
                           const std::vector<std::string>& subjects) {
  std::int64_t version = before.note.ordinal;
  if (!before.policy.draining) {
    ++version;
    if (auto ok = lock.write(version, stored_as(before.policy, version, true)); !ok) {
      return put_back(lock, before, ok.error());
    }
  }
  if (auto ok = holders.wait_until_free(subjects); !ok) return put_back(lock, before, ok.error());
  return version;
}

}  // namespace

Result<Policy> read_policy(LockStore& store, Deadline deadline) {
  Request ask;
  ask.verb = Verb::get;
  ask.targets = {{std::string(core::kSchemaKey), Mode::X}};
  auto replies = store.apply({&ask, 1}, deadline);
  if (!replies) return replies.error();
  const auto& info = replies->front().info;
  if (!info) return refuse(Code::unsupported, "this store keeps no policy");
  return read_note(info->note);
}

Result<AppliedPolicy> apply_policy(LockStore& store, Policy wanted,
                                   const ApplyPolicyOptions& options) {
  if (const auto problem = find_problem(wanted)) {
    return refuse(Code::bad_request, problem->message);
  }
  wanted.draining = false;
  if (stored_as(wanted, kMaxTtl.count(), true).size() > kMaxReservedNoteBytes) {
    return refuse(Code::bad_request, "the policy is too large to be stored: at most " +
                                         std::to_string(kMaxReservedNoteBytes) + " bytes");
  }
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  SchemaLock lock(store, clock, options.owner);
  auto note = lock.take();
  if (!note) return note.error();
  auto before = read_before(std::move(*note), options.replace);
  if (!before) return before.error();
  const std::int64_t found = before->note.ordinal;
  if (before->readable && found > 0 && same_content(wanted, before->policy)) {
    return AppliedPolicy{.version = found, .unchanged = true};
  }

  AppliedPolicy applied{.version = found, .drained = before->to_drain(wanted)};
  // The version is that of the conflicts. Other rules reach a client when it starts; that is no
  // reason to deny it anything until then.
  if (found == 0 || before->policy.draining || !before->readable) ++applied.version;
  if (!applied.drained.empty()) {
    Drain holders(store, clock, lock, options);
    auto drained = drain(lock, *before, holders, applied.drained);
    if (!drained) return drained.error();
    applied.version = *drained + 1;
  }
  if (auto ok = lock.write(applied.version, stored_as(wanted, applied.version, false)); !ok) {
    return ok.error();
  }
  return applied;
}

}  // namespace baton::policy
