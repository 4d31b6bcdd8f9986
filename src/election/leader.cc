// Finds the leader, and asks it to resign or to transfer: for electors and for operators.

#include <algorithm>

#include "baton/elector.h"
#include "election/orders.h"
#include "election/waiting.h"

namespace baton {
namespace {

constexpr std::string_view kSubject = "leader";
constexpr std::string_view kPredicate = "leading";

// A candidate that was handed the lock and has not claimed it does not lead yet.
const HolderInfo* leading(const LockInfo& info) {
  const auto it =
      std::find_if(info.holders.begin(), info.holders.end(),
                   [](const HolderInfo& holder) { return holder.claimed && !holder.released; });
  return it == info.holders.end() ? nullptr : &*it;
}

Leader describe(const HolderInfo& holder, std::size_t waiting) {
  return {.node = holder.owner,
          .term = holder.token,
          .led_for = holder.held_for,
          .since = std::chrono::system_clock::now() - holder.held_for,
          .metadata = holder.metadata,
          .leaving = holder.revoked,
          .candidates = waiting,
          .grant = holder.grant};
}

Result<std::optional<Leader>> ask_to_go(LockClient& locks, const LockName& lock,
                                        const Leader& leader, const std::string& order) {
  if (leader.term == 0) {
    return Error{.code = Code::unsupported,
                 .message = leader.node + " holds " + print_path(lock) +
                            " without a term of Baton and cannot be asked; end it where it runs"};
  }
  // Only this grant: a later leader is not asked to resign.
  auto hit = locks.break_lock(lock, {.reason = order, .only = leader.grant});
  if (!hit) return hit.error();
  if (hit->empty()) return std::optional<Leader>{};
  return std::optional(leader);
}

}  // namespace

Result<LockName> election_lock(std::string_view name, std::string_view region) {
  auto lock = parse_path(std::string(kSubject) + "/" + std::string(name));
  if (!lock) {
    return Error{.code = Code::bad_name,
                 .message = "the election '" + std::string(name) + "': " + lock.error().message};
  }
  lock->predicate = kPredicate;
  lock->region = region;
  if (auto ok = validate(*lock); !ok) return ok.error();
  return lock;
}

Result<std::optional<Leader>> leader_of(LockClient& locks, const LockName& lock, Millis timeout) {
  const auto info = locks.get(lock, timeout);
  if (!info) return info.error();
  const HolderInfo* holder = leading(*info);
  if (holder == nullptr) return std::optional<Leader>{};
  return std::optional(describe(*holder, info->waiting));
}

Result<std::optional<Leader>> resign_leader(LockClient& locks, const LockName& lock,
                                            const std::string& reason) {
  auto leader = leader_of(locks, lock);
  if (!leader || !*leader) return leader;
  return ask_to_go(locks, lock, **leader, election::resign_order(reason));
}

Result<std::optional<Leader>> transfer_leader(LockClient& locks, const LockName& lock,
                                              const std::string& node) {
  if (auto ok = election::can_transfer(locks); !ok) return ok.error();
  const auto info = locks.get(lock);
  if (!info) return info.error();
  const HolderInfo* holder = leading(*info);
  if (holder == nullptr) return std::optional<Leader>{};
  if (auto ok = election::waits(*info, node); !ok) return ok.error();
  return ask_to_go(locks, lock, describe(*holder, info->waiting), election::transfer_order(node));
}

}  // namespace baton
