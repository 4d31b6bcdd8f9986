#include "store/etcd/txn_plan.h"

#include <algorithm>

#include "core/document.h"
#include "store/etcd/visible_state.h"

namespace baton::store::etcd {
namespace {

using core::Holder;
using core::HolderState;
using core::NameState;
using core::Tombstone;
using core::Waiter;

constexpr Millis kMoment{2000};

// Sending documents saves their readers a round trip. Large ones and crowds are not worth it.
constexpr std::size_t kMostTold = 4;
constexpr std::size_t kLongestTold = 8192;

bool names_its_own(Verb verb) { return verb != Verb::break_ && verb != Verb::get; }

}  // namespace

TxnPlan::TxnPlan(const Step& step, const Layout& layout, const std::string& session)
    : step_(step), layout_(layout), session_(session) {
  for (const Request* request : step.group.requests) {
    if (names_its_own(request->verb)) asking_.insert(request->grant);
  }
  for (const auto& [key, after] : step.states) {
    if (!after.dirty) continue;
    const Document& found = step.found.documents.at(key);
    const bool unchanged = same_visible_state(found.state, after, step.found.now);
    if (unchanged && !step.drew) continue;
    Name name = name_of(key, after);
    if (name.removed && name.before->version == 0) {
      if (!step.drew) continue;
      name.removed = false;  // an empty document for a moment, so that no token is drawn twice
      name.after = {};
    }
    names_.push_back(std::move(name));
  }
}

const Record& TxnPlan::record(const std::string& key) const {
  return static_cast<const Record&>(*step_.found.documents.at(key).provenance);
}

bool TxnPlan::is_own(const std::string& key, GrantId grant) const {
  const Marks& marks = record(key).marks_of(grant);
  return marks.any() ? marks.own : asking_.contains(grant);
}

TxnPlan::Name TxnPlan::name_of(const std::string& key, NameState after) const {
  Name name{.key = key, .before = &record(key)};
  drop_ended(after, step_.found.now);
  name.removed = core::forgettable(after, step_.found.now);
  name.after = LocalView::to_be_written(after, *name.before,
                                        [&](GrantId grant) { return is_own(key, grant); });
  // One that had ended and begins again may have a mark that is just being removed.
  const auto has_mark = [&](GrantId grant) {
    return name.before->marks_of(grant).alive != 0 &&
           (!asking_.contains(grant) ||
            lives(step_.found.documents.at(key).state, grant, step_.found.now));
  };
  for (const Holder& holder : after.holders) {
    const Marks& marks = name.before->marks_of(holder.grant);
    if (holder.state != HolderState::parked && !has_mark(holder.grant)) {
      name.new_claimants.insert(holder.grant);
    }
    const bool new_hold = holder.state == HolderState::parked ? marks.at_least == 0
                                                              : holder.state == HolderState::held &&
                                                                    holder.since == step_.found.now;
    if (new_hold && holder.at_least_for > Millis{0} && is_own(key, holder.grant)) {
      name.new_at_least.insert(holder.grant);
    }
  }
  for (const Waiter& waiter : after.waiters) {
    if (!has_mark(waiter.grant)) name.new_claimants.insert(waiter.grant);
  }
  for (const Tombstone& stone : after.tombstones) {
    const bool had =
        std::find(name.before->state.tombstones.begin(), name.before->state.tombstones.end(),
                  stone) != name.before->state.tombstones.end();
    if (!had && is_own(key, stone.grant)) name.new_tombstones.insert(stone.grant);
  }
  return name;
}

Result<bool> TxnPlan::secure_leases(Leases& leases, Deadline deadline) {
  for (std::size_t i = 0; i < step_.replies.size(); ++i) {
    auto secured = secure(*step_.group.requests[i], step_.replies[i], leases, deadline);
    if (!secured || !*secured) return secured;
  }
  for (const Name& name : names_) {
    auto secured = secure_marks(name, leases, deadline);
    if (!secured || !*secured) return secured;
  }
  return true;
}

// `granted` promises a TTL from when the request was sent, and that was before now.
Result<bool> TxnPlan::secure(const Request& request, const Reply& reply, Leases& leases,
                             Deadline deadline) {
  const bool granted = reply.outcome == Outcome::granted;
  if (!granted && reply.outcome != Outcome::queued) return true;
  for (const Target& target : request.targets) {
    const core::Claimant* who = claimant(step_.states.at(target.key), request.grant);
    if (who == nullptr) continue;  // a later request of the batch has ended it again
    const Instant until = started_ + (granted ? who->ttl : request.queue_ttl);
    const Marks& marks = record(target.key).marks_of(request.grant);
    if (marks.alive != 0) {
      auto alive = leases.keep(marks.lease, until, deadline);
      if (!alive || !*alive) return alive;
      continue;
    }
    if (claimant_leases_.contains(request.grant)) continue;
    auto lease = leases.get(std::max(who->ttl, request.queue_ttl), until, deadline);
    if (!lease) return lease.error();
    claimant_leases_[request.grant] = *lease;
    used_.insert(*lease);
  }
  return true;
}

Result<bool> TxnPlan::secure_marks(const Name& name, Leases& leases, Deadline deadline) {
  if (name.removed) return true;
  if (name.after.empty()) {
    auto lease = leases.get(kMoment, started_ + kMoment, deadline);
    if (!lease) return lease.error();
    moment_ = *lease;
    used_.insert(*lease);
  }
  for (const GrantId grant : name.new_claimants) {
    if (claimant_leases_.contains(grant)) continue;
    const Millis ttl = claimant(name.after, grant)->ttl;
    auto lease = leases.get(ttl, started_ + ttl, deadline);
    if (!lease) return lease.error();
    claimant_leases_[grant] = *lease;
    used_.insert(*lease);
  }
  for (const Holder& holder : name.after.holders) {
    if (!name.new_at_least.contains(holder.grant)) continue;
    auto lease = leases.once(holder.at_least_for, deadline);
    if (!lease) return lease.error();
    at_least_leases_[{name.key, holder.grant}] = *lease;
  }
  for (const Tombstone& stone : name.after.tombstones) {
    if (!name.new_tombstones.contains(stone.grant)) continue;
    const auto span = std::chrono::ceil<Millis>(stone.until - step_.found.now);
    auto lease = leases.get(span, started_ + span, deadline);
    if (!lease) return lease.error();
    tombstone_leases_[stone.grant] = *lease;
    used_.insert(*lease);
  }
  return true;
}

LeaseId TxnPlan::lease_of(const Name& name, GrantId grant) const {
  if (const Marks& marks = name.before->marks_of(grant); marks.alive != 0) return marks.lease;
  const auto it = claimant_leases_.find(grant);
  return it == claimant_leases_.end() ? 0 : it->second;
}

// A name that only its holder keeps goes with its holder, and leaves nothing behind that somebody
// would have to sweep up.
LeaseId TxnPlan::document_lease(const Name& name) const {
  const NameState& state = name.after;
  if (state.empty()) return moment_;
  if (state.note != Note{} || !state.waiters.empty()) return 0;
  if (state.holders.empty() && state.tombstones.size() == 1) {
    const auto it = tombstone_leases_.find(state.tombstones[0].grant);
    return it == tombstone_leases_.end() ? 0 : it->second;
  }
  if (state.holders.size() != 1 || !state.tombstones.empty()) return 0;
  const Holder& holder = state.holders[0];
  if (holder.at_least_for > Millis{0} || !is_own(name.key, holder.grant)) return 0;
  return lease_of(name, holder.grant);
}

void TxnPlan::add_writes(const Name& name, std::vector<Op>& ops) const {
  if (name.removed) {
    ops.push_back({.what = Op::What::erase,
                   .key = layout_.document(name.key),
                   .end = layout_.document_end(name.key)});
    return;
  }
  const auto put = [&](std::string key, std::string value, LeaseId lease) {
    ops.push_back(
        {.what = Op::What::put, .key = std::move(key), .value = std::move(value), .lease = lease});
  };
  put(layout_.document(name.key), core::to_document(name.after), document_lease(name));
  for (const GrantId grant : name.new_claimants) {
    put(layout_.mark(name.key, grant, Mark::alive), session_, lease_of(name, grant));
  }
  for (const GrantId grant : name.new_at_least) {
    put(layout_.mark(name.key, grant, Mark::at_least), session_,
        at_least_leases_.at({name.key, grant}));
  }
  for (const GrantId grant : name.new_tombstones) {
    put(layout_.mark(name.key, grant, Mark::tombstone), session_, tombstone_leases_.at(grant));
  }
}

// Marks of nobody mean nothing: if there is no room they stay until the next write, or their lease
// ends.
void TxnPlan::add_erasures(const Name& name, std::vector<Op>& ops) const {
  if (name.removed) return;
  const auto erase = [&](GrantId grant, Mark mark) {
    if (ops.size() >= kMostOps) return;
    ops.push_back({.what = Op::What::erase, .key = layout_.mark(name.key, grant, mark)});
  };
  for (const auto& entry : name.before->marks) {
    const GrantId& grant = entry.first;
    const auto& marks = entry.second;
    const core::Claimant* who = claimant(name.after, grant);
    const Holder* const holder = holder_of(name.after, grant);
    const bool parked = holder != nullptr && holder->state == HolderState::parked;
    if (marks.alive != 0 && (who == nullptr || parked)) erase(grant, Mark::alive);
    if (marks.at_least != 0 && who == nullptr) erase(grant, Mark::at_least);
    const auto& stones = name.after.tombstones;
    const bool entombed = std::any_of(stones.begin(), stones.end(),
                                      [&](const Tombstone& t) { return t.grant == grant; });
    if (marks.tombstone != 0 && !entombed) erase(grant, Mark::tombstone);
  }
}

// Adds a comparison for everything that the answers depend on: the documents that change, the
// schema, and the marks of the claimants that ask. All marks of a grant have one lease, so one of
// them speaks for the set.
void TxnPlan::add_compares(Txn& txn) const {
  const auto written = [&](const std::string& key) {
    return std::any_of(names_.begin(), names_.end(),
                       [&](const Name& name) { return name.key == key; });
  };
  for (const auto& [key, document] : step_.found.documents) {
    if (!step_.found.guessed && key != core::kSchemaKey && !written(key)) continue;
    txn.compares.push_back({.what = Compare::What::changed_at,
                            .key = layout_.document(key),
                            .revision = static_cast<Revision>(document.version)});
  }
  std::set<GrantId> compared;
  for (const Request* request : step_.group.requests) {
    if (!names_its_own(request->verb) || !compared.insert(request->grant).second) continue;
    const Marks& marks = record(request->targets[0].key).marks_of(request->grant);
    if (marks.alive == 0) continue;
    txn.compares.push_back(
        {.what = step_.found.guessed ? Compare::What::exists : Compare::What::created_at,
         .key = layout_.mark(request->targets[0].key, request->grant, Mark::alive),
         .revision = marks.alive});
  }
}

bool TxnPlan::fits() const {
  std::size_t ops = 0;
  for (const Name& name : names_) {
    ops += 1;
    if (name.removed) continue;
    ops += name.new_claimants.size() + name.new_at_least.size() + name.new_tombstones.size();
  }
  return ops <= kMostOps;
}

Txn TxnPlan::txn(const std::map<std::string, std::string>& messages, LeaseId lease) const {
  Txn txn;
  add_compares(txn);
  for (const Name& name : names_) add_writes(name, txn.then);
  for (const auto& [channel, message] : messages) {
    if (txn.then.size() >= kMostOps) break;
    txn.then.push_back(
        {.what = Op::What::put, .key = layout_.wake(channel), .value = message, .lease = lease});
  }
  for (const Name& name : names_) add_erasures(name, txn.then);
  // A guess is right nearly always, and then asking what else there might be is paid for in vain.
  if (step_.found.guessed) return txn;
  for (const std::string& key : step_.group.keys) {
    txn.otherwise.push_back(
        {.what = Op::What::range, .key = layout_.document(key), .end = layout_.document_end(key)});
  }
  return txn;
}

std::map<std::string, std::map<std::string, std::string>> TxnPlan::documents_for_others() const {
  std::map<std::string, std::map<std::string, std::string>> sent;
  for (const Name& name : names_) {
    if (name.removed || name.after.holders.size() > kMostTold) continue;
    std::string text;
    for (const Holder& holder : name.after.holders) {
      if (holder.channel.empty() || is_own(name.key, holder.grant)) continue;
      if (text.empty()) text = core::to_document(name.after);
      if (text.size() <= kLongestTold) sent[holder.channel][name.key] = text;
    }
  }
  return sent;
}

std::vector<std::string> TxnPlan::keys() const {
  std::vector<std::string> keys;
  for (const Name& name : names_) keys.push_back(name.key);
  return keys;
}

std::shared_ptr<const Record> TxnPlan::written(const std::string& key, Revision version) const {
  const auto it =
      std::find_if(names_.begin(), names_.end(), [&](const Name& name) { return name.key == key; });
  if (it == names_.end() || it->removed) return nullptr;
  auto record = std::make_shared<Record>();
  record->state = it->after;
  record->state.dirty = false;
  record->version = version;
  resolve(record->state, static_cast<std::uint64_t>(version));
  record->marks = it->before->marks;
  for (const GrantId grant : it->new_claimants) {
    Marks& marks = record->marks[grant];
    marks.alive = version;
    marks.lease = lease_of(*it, grant);
    marks.own = true;
  }
  for (const GrantId grant : it->new_at_least) record->marks[grant].at_least = version;
  for (const GrantId grant : it->new_tombstones) {
    record->marks[grant].tombstone = version;
    record->marks[grant].own = true;
  }
  for (const Holder& holder : record->state.holders) {
    if (holder.state == HolderState::parked) record->marks[holder.grant].alive = 0;
  }
  std::erase_if(record->marks, [&](const auto& entry) { return !record->mentions(entry.first); });
  return record;
}

}  // namespace baton::store::etcd
