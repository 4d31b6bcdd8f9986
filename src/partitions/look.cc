#include "partitions/look.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "baton/partitions.h"
#include "partitions/plan.h"

namespace baton::partitions {
namespace {

constexpr std::size_t kPage = 2 * kMaxPartitions;  // so that one set is one page

const HolderInfo* holder_of(const LockInfo& info) {
  const auto held = std::find_if(info.holders.begin(), info.holders.end(),
                                 [](const HolderInfo& holder) { return !holder.released; });
  return held == info.holders.end() ? nullptr : &*held;
}

std::size_t count_of(const Metadata& metadata) {
  const auto it = metadata.find(std::string(kCountKey));
  return it == metadata.end() ? 0 : parse_number(it->second).value_or(0);
}

Result<std::vector<SeenLock>> find_all(LockClient& locks, const SetName& set,
                                       std::string_view subject, Millis timeout) {
  std::vector<SeenLock> found;
  Query query;
  query.region = set.region;
  query.subject = std::string(subject);
  query.resources = set.parts;
  query.limit = kPage;
  do {
    auto page = locks.find(query, timeout);
    if (!page) return page.error();
    for (const LockInfo& info : page->items) {
      const HolderInfo* holder = holder_of(info);
      auto name = parse_key(info.key);
      if (holder == nullptr || !name || name->resources.size() < 2) continue;
      // `relay` must not see what belongs to `relay/shop`.
      if (!set.parts.empty() && name->resources.size() != set.parts.size() + 1) continue;
      SeenLock lock{.holder = *holder, .count = count_of(holder->metadata)};
      lock.last = std::move(name->resources.back());
      name->resources.pop_back();
      lock.set = std::move(name->resources);
      for (const WaiterInfo& waiter : info.waiters) lock.waiters.push_back(waiter.owner);
      found.push_back(std::move(lock));
    }
    query.after = page->next;
  } while (!query.after.empty());
  return found;
}

std::string print_set(const std::vector<std::string>& parts) {
  std::string all = print_path({.subject = std::string(kPartitionSubject), .resources = parts});
  return all.substr(kPartitionSubject.size() + 1);
}

void add_member(PartitionSet& set, const SeenLock& lock) {
  set.count = std::max(set.count, lock.count);
  Metadata metadata = lock.holder.metadata;
  metadata.erase(std::string(kCountKey));
  set.members.push_back({.node = lock.last,
                         .token = lock.holder.token,
                         .member_for = lock.holder.held_for,
                         .metadata = std::move(metadata)});
}

void add_owner(PartitionSet& set, const SeenLock& lock) {
  const auto number = parse_number(lock.last);
  if (!number || *number >= kMaxPartitions) return;
  set.count = std::max({set.count, lock.count, *number + 1});
  set.partitions.push_back({.number = *number,
                            .node = lock.holder.owner,
                            .token = lock.holder.token,
                            .owned_for = lock.holder.held_for,
                            .expires_in = lock.holder.expires_in,
                            .ending = lock.holder.revoked,
                            .waiting = lock.waiters});
}

// Adds the free partitions, and what each member has and should have.
void complete(PartitionSet& set) {
  std::map<std::size_t, PartitionOwner> owners;
  std::map<std::string, std::size_t> owned;
  for (PartitionOwner& owner : set.partitions) {
    ++owned[owner.node];
    owners[owner.number] = std::move(owner);
  }
  set.partitions.clear();
  for (std::size_t number = 0; number < set.count; ++number) {
    owners[number].number = number;
    set.partitions.push_back(std::move(owners[number]));
  }
  std::sort(set.members.begin(), set.members.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  for (std::size_t rank = 0; rank < set.members.size(); ++rank) {
    set.members[rank].quota = quota(rank, set.members.size(), set.count);
    set.members[rank].owned = owned[set.members[rank].node];
  }
}

}  // namespace

Result<Look> look(LockClient& locks, const SetName& set, Millis timeout) {
  auto members = find_all(locks, set, kMemberSubject, timeout);
  if (!members) return members.error();
  auto partitions = find_all(locks, set, kPartitionSubject, timeout);
  if (!partitions) return partitions.error();
  return Look{std::move(*members), std::move(*partitions)};
}

}  // namespace baton::partitions

namespace baton {

Result<std::vector<PartitionSet>> partition_sets(LockClient& locks, std::string_view set,
                                                 std::string_view region, Millis timeout) {
  partitions::SetName name{{}, std::string(region)};
  if (!set.empty()) {
    auto parsed = partitions::parse_set(set, region);
    if (!parsed) return parsed.error();
    name = std::move(*parsed);
  }
  auto seen = partitions::look(locks, name, timeout);
  if (!seen) return seen.error();
  std::map<std::string, PartitionSet> sets;
  for (const auto& lock : seen->members) {
    partitions::add_member(sets[partitions::print_set(lock.set)], lock);
  }
  for (const auto& lock : seen->partitions) {
    partitions::add_owner(sets[partitions::print_set(lock.set)], lock);
  }
  std::vector<PartitionSet> all;
  for (auto& [key, one] : sets) {
    one.name = key;
    partitions::complete(one);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace baton
