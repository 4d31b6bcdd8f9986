#include "store/kubernetes/name_documents.h"

#include <algorithm>
#include <thread>

#include "store/kubernetes/object_name.h"

namespace baton::store::kubernetes {
namespace {

constexpr int kPatience = 8;  // of waiters, against that of holders

// A place in the queue that lasts so long need not be written again yet.
constexpr core::StoreTime kAmpleTime = Millis(1000);

// Of one write: below are the draws of creates, see resolved().
constexpr std::uint64_t kUpdateDraws = kDraws / 2;

const core::Holder* sole_holder(const core::NameState& state) {
  const bool alone = state.holders.size() == 1 && state.holders.front().mode == Mode::X;
  return alone ? &state.holders.front() : nullptr;
}

// Counts holders as other tools do: when somebody else has it.
std::int64_t transitions(const CachedName* before, const core::NameState& after) {
  if (before == nullptr) return 0;
  const core::Holder* was = sole_holder(before->state);
  const core::Holder* is = sole_holder(after);
  const bool passed = is != nullptr && (was == nullptr || was->grant != is->grant);
  return before->lease.transitions + (passed ? 1 : 0);
}

// Those that this write wakes, and those that a client which missed an earlier one must still hear
// of.
std::vector<core::Wake> still_to_wake(const core::NameState& state, std::vector<core::Wake> wakes) {
  for (const core::Holder& holder : state.holders) {
    if (holder.state != core::HolderState::handed && !holder.revoked) continue;
    wakes.push_back({holder.channel, holder.grant});
  }
  return wakes;
}

// Claims that only ask whether it is their turn: who follows the Lease need not ask the server.
bool only_asks(const Group& group) {
  return std::all_of(group.requests.begin(), group.requests.end(), [](const Request* request) {
    return request->verb == Verb::claim && request->queue_ttl <= Millis{0};
  });
}

bool all_queued(const Step& step) {
  return std::all_of(step.replies.begin(), step.replies.end(),
                     [](const Reply& reply) { return reply.outcome == Outcome::queued; });
}

bool drew_tokens(const Step& step) {
  return std::any_of(step.replies.begin(), step.replies.end(),
                     [](const Reply& reply) { return !reply.tokens.empty(); });
}

}  // namespace

Result<Snapshot> NameDocuments::read(const Group& group, bool may_guess, Deadline deadline) {
  if (auto looked = look_at_schema(group, may_guess, deadline); !looked) return looked.error();
  if (may_guess) {
    known_ = cache_.get(key_);
  } else if (auto looked = look(deadline); !looked) {
    return looked.error();
  }
  Snapshot found = snapshot(group);
  found.guessed = may_guess;
  return found;
}

Result<void> NameDocuments::look(Deadline deadline) {
  auto lease = api_.get(object_name(key_), deadline);
  if (!lease) return lease.error();
  if (!*lease) {
    // Gone at some time after what was known of it.
    if (known_ != nullptr) cache_.forget(key_, known_->lease.version);
    known_ = nullptr;
    return {};
  }
  auto wakes = cache_.learn(key_, std::move(**lease), api_.now(), known_);
  wakes_.insert(wakes_.end(), wakes.begin(), wakes.end());
  return {};
}

Result<void> NameDocuments::look_at_schema(const Group& group, bool may_guess, Deadline deadline) {
  const bool matters = std::ranges::find(group.keys, core::kSchemaKey) != group.keys.end();
  if (!matters || key_ == core::kSchemaKey) return {};
  schema_seen_ = schema_.guess();
  if (may_guess) return {};
  const bool all_agree =
      std::all_of(group.requests.begin(), group.requests.end(),
                  [&](const Request* request) { return request->schema_version == schema_seen_; });
  const auto version = all_agree ? schema_.confirm(deadline) : schema_.ask(deadline);
  if (!version) return version.error();
  schema_seen_ = *version;
  return {};
}

Snapshot NameDocuments::snapshot(const Group& group) const {
  Snapshot found;
  for (const std::string& key : group.keys) {
    Document& document = found.documents[key];
    if (key != key_) {
      document.state.note.ordinal = schema_seen_;
    } else if (known_ != nullptr) {
      document.state = known_->state;
      document.version = known_->lease.version;
      document.damage = known_->damage;
    }
  }
  found.now = api_.now().here;
  if (known_ != nullptr) found.base = known_->lease.version * kDraws + kUpdateDraws;
  return found;
}

Result<Written> NameDocuments::write(const core::NameState& state,
                                     const std::vector<core::Wake>& wakes, CachedName& next,
                                     const ClockReading& now, Deadline deadline) {
  static const Timings kNone;
  next.state = state;
  next.state.dirty = false;
  const CachedName* const known = known_.get();
  const std::string document =
      print_document(state, known != nullptr ? known->timings : kNone,
                     known != nullptr ? known->lease.version : 0, now, next.timings);
  if (document.size() > kMaxDocument) return Written{Written::Fate::too_large, {}};
  LeaseSpec spec = spec_of(state, next.timings);
  spec.transitions = transitions(known, state);
  const std::string body = print_lease(key_, document, print_wakes(still_to_wake(state, wakes)),
                                       spec, known != nullptr ? &known->lease : nullptr);
  if (known == nullptr) return api_.create(body, deadline);
  return api_.update(known->lease.name, body, deadline);
}

Result<Commit> NameDocuments::commit(const Step& step, Deadline deadline) {
  const auto nothing = [&] {
    const bool proven =
        !step.found.guessed || (only_asks(step.group) && all_queued(step) && believed(step));
    return Commit{.end = proven ? Commit::End::done : Commit::End::unproven};
  };
  const auto dirty = step.dirty();
  if (dirty.empty()) return nothing();
  const core::NameState& state = step.states.at(key_);
  if (can_wait(step)) {
    if (step.found.guessed && !believed(step)) return Commit{.end = Commit::End::unproven};
    keep_for_later(state);
    return Commit{};
  }
  const bool keep = !core::forgettable(state, step.found.now);
  if (!keep && known_ == nullptr)
    return drew_tokens(step) ? pass_through(step, deadline) : nothing();

  auto next = std::make_shared<CachedName>();
  const ClockReading now{step.found.now, api_.now().server};
  auto written =
      keep ? write(state, step.wakes, *next, now, deadline) : api_.remove(known_->lease, deadline);
  if (!written) return written.error();
  if (written->fate == Written::Fate::too_large) return Commit{.end = Commit::End::too_large};
  if (written->fate == Written::Fate::conflict) return lost_the_race(step, deadline);
  const std::uint64_t version = written->lease.version;
  // Kubernetes makes no new version of an object that is put as it was.
  if (keep && step.drew && known_ != nullptr && version == known_->lease.version) {
    return Commit{.end = Commit::End::no_trace};
  }
  remember(step, keep ? std::move(next) : nullptr, std::move(written->lease));
  return Commit{.version = version};
}

// A watch of the Lease tells a waiter when its turn has come, but a connection may go silent
// unnoticed. So the server is asked as often as a waiter that was promoted must claim.
bool NameDocuments::believed(const Step& step) const {
  if (known_ == nullptr || !listener_.hears()) return false;
  const auto quiet = step.found.now - cache_.told_at(key_);
  return std::all_of(
      known_->state.waiters.begin(), known_->state.waiters.end(), [&](const core::Waiter& waiter) {
        const bool asks = std::ranges::any_of(step.group.requests, [&](const Request* request) {
          return request->grant == waiter.grant;
        });
        return !asks || quiet < waiter.claim_within / 2;
      });
}

// Waiters that only refresh their places are the bulk of what is written where many wait, and every
// such write sends all others back to read. While at least half of the time is left that the
// document gives them, it is enough that we know.
bool NameDocuments::can_wait(const Step& step) const {
  if (known_ == nullptr || !all_queued(step)) return false;
  core::NameState refreshed = step.states.at(key_);
  const core::NameState& before = step.found.documents.at(key_).state;
  if (refreshed.waiters.size() != before.waiters.size()) return false;
  for (std::size_t i = 0; i < before.waiters.size(); ++i) {
    core::Waiter& waiter = refreshed.waiters[i];
    if (waiter.stale == before.waiters[i].stale) continue;
    const auto written = known_->timings.find("w" + to_string(waiter.grant));
    if (waiter.converting || written == known_->timings.end()) return false;
    const auto left = written->second.ends - step.found.now;
    if (left < kAmpleTime || left < (waiter.stale - step.found.now) / 2) return false;
    waiter.stale = before.waiters[i].stale;
  }
  return refreshed.waiters == before.waiters && refreshed.holders == before.holders &&
         refreshed.tombstones == before.tombstones && refreshed.note == before.note;
}

void NameDocuments::keep_for_later(const core::NameState& state) {
  auto next = std::make_shared<CachedName>(*known_);
  next->state = state;
  next->state.dirty = false;
  cache_.amend(key_, std::move(next));
}

// The more often that happens, the longer we stand back; and a request that only queues stands back
// for those who pass the lock on, or all would queue and nobody get through. Who follows the Lease
// may know by then what it lost to.
Commit NameDocuments::lost_the_race(const Step& step, Deadline deadline) {
  Commit commit{.end = Commit::End::conflict};
  const auto pause = backoff_.next(random_()) * (all_queued(step) ? kPatience : 1);
  if (BootClock::now() + pause >= deadline) return commit;
  if (++conflicts_ > 1 || all_queued(step)) std::this_thread::sleep_for(pause);
  auto now_known = listener_.hears() ? cache_.get(key_) : nullptr;
  const std::uint64_t lost_on = known_ == nullptr ? 0 : known_->lease.version;
  if (now_known == nullptr || now_known->lease.version <= lost_on) return commit;
  known_ = std::move(now_known);
  commit.found = snapshot(step.group);
  commit.found->guessed = true;
  return commit;
}

// Granted and ended again in one batch: nothing is left, but only a write makes a token.
Result<Commit> NameDocuments::pass_through(const Step& step, Deadline deadline) {
  CachedName next;
  const ClockReading now{step.found.now, api_.now().server};
  auto written = write({}, {}, next, now, deadline);
  if (!written) return written.error();
  if (written->fate != Written::Fate::done) return Commit{.end = Commit::End::conflict};
  // If that fails, an empty Lease is left for the next holder to use.
  (void)api_.remove(written->lease, deadline);
  wakes_.insert(wakes_.end(), step.wakes.begin(), step.wakes.end());
  return Commit{.version = written->lease.version};
}

void NameDocuments::remember(const Step& step, std::shared_ptr<CachedName> next,
                             LeaseObject lease) {
  if (key_ == core::kSchemaKey) {
    const std::int64_t version = step.states.at(key_).note.ordinal;
    schema_changed_ = step.found.documents.at(key_).state.note.ordinal != version;
    schema_.wrote(version);
  }
  if (next != nullptr) {
    next->lease = std::move(lease);
    resolve(next->state, next->lease.version);
    cache_.wrote(key_, std::move(next), step.found.now);
  } else {
    cache_.forget(key_, known_->lease.version);
  }
  wakes_.insert(wakes_.end(), step.wakes.begin(), step.wakes.end());
}

}  // namespace baton::store::kubernetes
