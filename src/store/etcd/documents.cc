#include "store/etcd/documents.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/apply.h"
#include "store/etcd/etcd_error.h"
#include "store/etcd/visible_state.h"
#include "store/etcd/wire.h"

namespace baton::store::etcd {
namespace {

using core::HolderState;
using core::StoreTime;
using Ended = OwnGrants::Ended;

constexpr std::size_t kMostGuesses = 10'000;
constexpr std::size_t kPage = 512;  // keys
constexpr Millis kMessageLease{10'000};
constexpr Millis kChanging{100};  // until a name is tried again that somebody was changing

bool may_be_guessed(Verb verb) {
  return verb != Verb::renew && verb != Verb::get && verb != Verb::break_;
}

bool all_own(const Record& record) {
  const auto own = [&](const auto& who) { return record.marks_of(who.grant).own; };
  return std::all_of(record.state.holders.begin(), record.state.holders.end(), own) &&
         std::all_of(record.state.waiters.begin(), record.state.waiters.end(), own) &&
         std::all_of(record.state.tombstones.begin(), record.state.tombstones.end(), own);
}

// An answer with more in it than we take is such an error. So are a few others, which come again.
bool too_much(const Error& error) { return error.code == Code::unavailable && !error.retryable; }

std::map<std::string, std::vector<Ended>> grouped(const std::vector<Ended>& ended) {
  std::map<std::string, std::vector<Ended>> by_key;
  for (const Ended& one : ended) by_key[one.key].push_back(one);
  return by_key;
}

}  // namespace

EtcdDocuments::EtcdDocuments(Gateway& gateway, Leases& leases, Layout layout, Options options)
    : gateway_(gateway),
      leases_(leases),
      layout_(std::move(layout)),
      options_(std::move(options)),
      session_(to_string(new_grant_id())),
      epoch_(gateway_, leases_, layout_, session_) {}

Document EtcdDocuments::document(const std::string& key, std::shared_ptr<const Record> record,
                                 StoreTime now, bool remember) {
  Document document;
  document.state = view_.localised(key, *record, now, remember);
  document.version = static_cast<std::uint64_t>(record->version);
  document.damage = record->damage;
  document.provenance = std::move(record);
  return document;
}

// A snapshot of the state that was last known of each name; of no state where only new holds are
// asked for. A wrong guess costs the cluster a write for nothing, so a newcomer reads first if
// another holder was seen.
std::optional<Snapshot> EtcdDocuments::guess(const Group& group) {
  Snapshot snapshot;
  snapshot.guessed = true;
  snapshot.now = options_.now();
  std::map<std::string, bool> only_acquired;
  std::set<std::string> newcomers;
  for (const Request* request : group.requests) {
    if (!may_be_guessed(request->verb)) return std::nullopt;
    for (const Target& target : request->targets) {
      auto& only = only_acquired.try_emplace(target.key, true).first->second;
      only = only && request->verb == Verb::acquire;
      if (request->verb == Verb::acquire) newcomers.insert(target.key);
    }
  }
  only_acquired.try_emplace(std::string(core::kSchemaKey), true);
  for (const std::string& key : group.keys) {
    std::shared_ptr<const Record> record;
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = guesses_.find(key); it != guesses_.end()) record = it->second;
    }
    if (!record && !only_acquired[key]) return std::nullopt;
    if (record && newcomers.contains(key) && !all_own(*record)) return std::nullopt;
    if (!record) record = std::make_shared<Record>();
    snapshot.documents[key] = document(key, std::move(record), snapshot.now, false);
  }
  return snapshot;
}

Snapshot EtcdDocuments::snapshot(const Group& group, const Found& found) {
  Snapshot snapshot;
  snapshot.now = options_.now();
  for (std::size_t i = 0; i < group.keys.size(); ++i) {
    const std::string& key = group.keys[i];
    auto record = record_of(layout_, session_, found[i]);
    remember(key, record);
    snapshot.documents[key] = document(key, std::move(record), snapshot.now, true);
  }
  return snapshot;
}

void EtcdDocuments::remember(const std::string& key, std::shared_ptr<const Record> record) {
  const bool known =
      record && record->damage.empty() && (record->version != 0 || key == core::kSchemaKey);
  const std::lock_guard lock(mutex_);
  if (!known) {
    guesses_.erase(key);
    return;
  }
  if (guesses_.size() >= kMostGuesses) guesses_.erase(guesses_.begin());
  guesses_[key] = std::move(record);
}

void EtcdDocuments::believe(const std::string& key, const std::string& text, Revision version) {
  const std::lock_guard lock(mutex_);
  const auto it = guesses_.find(key);
  if (it == guesses_.end() || it->second->version >= version) return;
  if (auto record = record_sent(text, version, *it->second)) it->second = std::move(record);
}

Result<Snapshot> EtcdDocuments::read(const Group& group, bool may_guess, Deadline deadline) {
  if (may_guess) {
    if (auto guessed = guess(group)) return std::move(*guessed);
  }
  auto found = look(group.keys, deadline);
  if (!found) return found.error();
  return snapshot(group, *found);
}

Result<EtcdDocuments::Found> EtcdDocuments::look(const std::vector<std::string>& keys,
                                                 Deadline deadline) {
  Txn txn;
  for (const std::string& key : keys) {
    txn.then.push_back(
        {.what = Op::What::range, .key = layout_.document(key), .end = layout_.document_end(key)});
  }
  auto answer = gateway_.txn(txn, deadline);
  if (!answer) return answer.error();
  if (answer->ranges.size() != keys.size()) {
    return Error{.code = Code::unavailable,
                 .message = "etcd: an answer that is not etcd's",
                 .retryable = true};
  }
  return std::move(answer->ranges);
}

Result<Commit> EtcdDocuments::commit(const Step& step, Deadline deadline) {
  TxnPlan plan(step, layout_, session_);
  if (!plan.writes() && step.found.guessed) return Commit{.end = Commit::End::unproven};
  if (!plan.fits()) return Commit{.end = Commit::End::too_large};
  auto secured = plan.secure_leases(leases_, deadline);
  if (!secured) return secured.error();
  if (!*secured) return Commit{.end = Commit::End::conflict};
  if (plan.writes()) return write(step, plan, deadline);
  keep(step, plan, 0);
  wake_here(step);
  return Commit{};
}

std::map<std::string, std::string> EtcdDocuments::messages(const Step& step,
                                                           const TxnPlan& plan) const {
  std::map<std::string, wire::Message> by_channel;
  for (const core::Wake& wake : step.wakes) by_channel[wake.channel].grants.push_back(wake.grant);
  for (auto& [channel, documents] : plan.documents_for_others()) {
    by_channel[channel].documents = std::move(documents);
  }
  std::map<std::string, std::string> messages;
  for (const auto& [channel, message] : by_channel) {
    if (!subscribers_->has(channel)) messages[channel] = wire::message(message);
  }
  return messages;
}

Result<Commit> EtcdDocuments::write(const Step& step, const TxnPlan& plan, Deadline deadline) {
  const auto told = messages(step, plan);
  LeaseId lease = told.empty() ? 0 : leases_.any();
  if (!told.empty() && lease == 0) {
    const auto got = leases_.get(kMessageLease, BootClock::now() + kMessageLease, deadline);
    if (!got) return got.error();
    lease = *got;
  }
  const WriteEpoch::Number epoch = epoch_.number();
  Txn txn = plan.txn(told, lease);
  txn.compares.push_back(epoch_.not_ended(epoch));
  auto answer = gateway_.txn(txn, deadline);
  if (!answer) {
    if (answer.error().in_doubt) {
      epoch_.doubt(epoch);
      keep(step, plan, 0);  // if it was written, it must end all the same
    }
    return answer.error();
  }
  if (answer->refused == TxnAnswer::Refused::too_large) {
    return Commit{.end = Commit::End::too_large};
  }
  if (answer->refused == TxnAnswer::Refused::lease_not_found) {
    for (const LeaseId used : plan.leases()) leases_.forget(used);
    leases_.forget(lease);
    return Commit{.end = Commit::End::conflict};
  }
  if (!answer->succeeded) {
    Commit conflict{.end = Commit::End::conflict};
    if (answer->ranges.size() == step.group.keys.size()) {
      conflict.found = snapshot(step.group, answer->ranges);
    }
    return conflict;
  }
  keep(step, plan, answer->revision);
  wake_here(step);
  return Commit{.version = static_cast<std::uint64_t>(answer->revision)};
}

// Version 0: nothing was written, or nobody knows.
void EtcdDocuments::keep(const Step& step, const TxnPlan& plan, Revision version) {
  const auto keys = plan.keys();
  for (const auto& [key, state] : step.states) {
    if (!state.dirty) continue;
    core::NameState kept = state;
    resolve(kept, static_cast<std::uint64_t>(version));
    const bool written = version != 0 && std::find(keys.begin(), keys.end(), key) != keys.end();
    const Document& found = step.found.documents.at(key);
    view_.keep(
        key, found.state, kept,
        [&, &name = key](GrantId grant) { return plan.is_own(name, grant); },
        written ? version : static_cast<Revision>(found.version), written);
  }
  for (const std::string& key : keys) {
    remember(key, version == 0 ? nullptr : plan.written(key, version));
  }
}

void EtcdDocuments::wake_here(const Step& step) {
  for (const core::Wake& wake : step.wakes) subscribers_->wake(wake.channel, {&wake.grant, 1});
}

Result<void> EtcdDocuments::clear_up(Deadline deadline) {
  auto ended = epoch_.end_if_in_doubt(deadline);
  // A store that is full takes no key, but releases must go on.
  if (!ended && !is_full(ended.error())) return ended;
  return drop_ended(deadline);
}

Result<void> EtcdDocuments::drop_ended(Deadline deadline) {
  const StoreTime now = options_.now();  // grants that end later are for the next call
  while (true) {
    const auto ended = own_.take_ended(now, kMostOps);
    if (ended.empty()) return {};
    if (auto dropped = drop(ended, now, deadline); !dropped) {
      Error error = dropped.error();
      error.in_doubt = false;  // nothing that was asked for
      return error;
    }
  }
}

Result<void> EtcdDocuments::drop(const std::vector<Ended>& ended, StoreTime now,
                                 Deadline deadline) {
  const auto by_key = grouped(ended);
  std::vector<std::string> keys;
  for (const auto& [key, some] : by_key) keys.push_back(key);
  const auto found = look(keys, deadline);
  if (!found && too_much(found.error()) && keys.size() > 1)
    return drop_halves(ended, now, deadline);
  if (!found) return ask_again(ended, now), found.error();

  Txn txn;
  std::vector<Ended> over;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto record = record_of(layout_, session_, (*found)[i]);
    const core::NameState state = view_.localised(keys[i], *record, now, true);
    txn.compares.push_back({.key = layout_.document(keys[i]), .revision = record->version});
    for (const Ended& one : by_key.at(keys[i])) {
      // A waiter may be handed the lock after its queue_ttl, and then has that long to come.
      const core::Holder* const holder = holder_of(state, one.grant);
      if (holder != nullptr && holder->state == HolderState::handed && holder->expires > now) {
        own_.ask_again(one, holder->expires);
        continue;
      }
      over.push_back(one);
      if (!record->marks_of(one.grant).any()) continue;
      txn.then.push_back({.what = Op::What::erase,
                          .key = layout_.marks(one.key, one.grant),
                          .end = layout_.marks_end(one.key, one.grant)});
    }
  }
  bool erased = txn.then.empty();
  if (!erased) {
    const auto answer = gateway_.txn(txn, deadline);
    for (const std::string& key : keys) remember(key, nullptr);  // its marks are not what they were
    if (!answer) return ask_again(over, now), answer.error();
    erased = answer->succeeded;
  }
  // One name that others keep changing must not hold up the rest.
  if (!erased && keys.size() > 1) return drop_halves(over, now, deadline);
  if (!erased) return ask_again(over, now + kChanging), Result<void>();
  for (const Ended& one : over) own_.forget(one);
  return {};
}

// Few round trips, also if only one of many names is in the way.
Result<void> EtcdDocuments::drop_halves(const std::vector<Ended>& ended, StoreTime now,
                                        Deadline deadline) {
  const auto by_key = grouped(ended);
  std::array<std::vector<Ended>, 2> halves;
  std::size_t count = 0;
  for (const auto& [key, some] : by_key) {
    auto& half = halves[2 * count++ < by_key.size() ? 0 : 1];
    half.insert(half.end(), some.begin(), some.end());
  }
  Result<void> result;
  for (const auto& half : halves) {
    if (half.empty()) continue;
    if (result) {
      result = drop(half, now, deadline);
    } else {
      ask_again(half, now);
    }
  }
  return result;
}

void EtcdDocuments::ask_again(const std::vector<Ended>& ended, StoreTime at) {
  for (const Ended& one : ended) own_.ask_again(one, at);
}

// Gives every name with all its keys until that returns false. Where to go on after so many pages;
// empty when there is no more.
Result<std::string> EtcdDocuments::visit(std::string from, const std::string& end,
                                         std::size_t pages, const OnName& on_name,
                                         Deadline deadline) {
  const std::string began = from;
  std::size_t page = kPage;
  std::string key;
  std::vector<KeyValue> of_key;
  for (; pages > 0; --pages) {
    auto answer = gateway_.range(from, end, page, deadline);
    while (!answer && too_much(answer.error()) && page > 1) {
      page /= 2;
      answer = gateway_.range(from, end, page, deadline);
    }
    if (!answer) return answer.error();
    for (KeyValue& item : answer->found) {
      const auto place = layout_.parse(item.key);
      from = item.key + '\0';
      if (!place) continue;
      if (place->key != key) {
        if (!of_key.empty() && !on_name(key, of_key)) return std::string();
        of_key.clear();
        key = place->key;
      }
      of_key.push_back(std::move(item));
    }
    if (answer->more && !answer->found.empty()) continue;
    if (!of_key.empty()) on_name(key, of_key);
    return std::string();
  }
  if (key.empty()) return from;
  // A name that is longer than all the pages is passed over, or nobody would get beyond it.
  return began == layout_.document(key) ? layout_.document_end(key) : layout_.document(key);
}

Result<Page<LockInfo>> EtcdDocuments::find(const Query& query, Deadline deadline) {
  Page<LockInfo> page;
  const std::string prefix = layout_.names() + core::key_prefix(query);
  const std::size_t limit = std::max<std::size_t>(query.limit, 1);
  const std::string from =
      query.after.empty() ? prefix : std::max(prefix, layout_.document_end(query.after));
  const StoreTime now = options_.now();
  const auto show = [&](const std::string& key, const std::vector<KeyValue>& found) {
    auto record = record_of(layout_, session_, found);
    if (record->version == 0) return true;
    LockInfo info;
    if (record->damage.empty()) {
      const Document seen = document(key, std::move(record), now, false);
      info = core::describe(key, seen.state, now, ~std::size_t{0});
    } else {
      info = {.key = key, .damage = record->damage};
    }
    if (!core::matches(query, info)) return true;
    if (page.items.size() == limit) {
      page.next = page.items.back().key;
      return false;
    }
    if (info.waiters.size() > query.max_waiters) info.waiters.resize(query.max_waiters);
    page.items.push_back(std::move(info));
    return true;
  };
  auto visited = visit(from, after_prefix(prefix), ~std::size_t{0}, show, deadline);
  if (!visited) return visited.error();
  return page;
}

void EtcdDocuments::sweep(Deadline deadline) {
  const std::unique_lock turn(sweeping_, std::try_to_lock);
  if (!turn) return;
  const StoreTime now = options_.now();
  std::vector<std::pair<std::string, Revision>> forgotten;
  const auto look = [&](const std::string& key, const std::vector<KeyValue>& found) {
    auto record = record_of(layout_, session_, found);
    const Revision version = record->version;
    if (version == 0 || !record->damage.empty()) return true;
    const Document seen = document(key, std::move(record), now, false);
    if (core::forgettable(seen.state, now)) forgotten.emplace_back(key, version);
    return true;
  };
  const std::string& all = layout_.names();
  auto next = visit(sweep_from_.empty() ? all : sweep_from_, after_prefix(all), 1, look, deadline);
  if (!next) return;  // the next request for a lock reports the error
  sweep_from_ = std::move(*next);
  for (const auto& [key, version] : forgotten) {
    Txn txn;
    txn.compares.push_back({.key = layout_.document(key), .revision = version});
    txn.then.push_back(
        {.what = Op::What::erase, .key = layout_.document(key), .end = layout_.document_end(key)});
    if (!gateway_.txn(txn, deadline)) return;
  }
}

}  // namespace baton::store::etcd
