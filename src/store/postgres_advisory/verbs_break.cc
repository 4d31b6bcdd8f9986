// Taking a lock from its holders, those of other processes too.

#include <algorithm>

#include "core/apply.h"
#include "store/postgres_advisory/answers.h"
#include "store/postgres_advisory/verbs.h"

namespace baton::store::postgres_advisory {

Result<Reply> Verbs::break_holders(const Request& request) {
  const std::string& key = request.targets[0].key;
  settle(key);
  const auto now = seen(key);
  if (!now) return now.error();
  const std::int64_t lock_key = (*now)->lock_key;
  core::NameState state = grants_.table().name_state(key, **now);
  std::erase_if(state.holders, [&](const core::Holder& holder) {
    return !request.grant.empty() && holder.grant != request.grant;
  });
  Reply reply = outcome(Outcome::done);
  reply.holders = core::describe(key, state, grants_.now(), 0).holders;
  if (reply.holders.empty()) return reply;
  std::vector<GrantId> grants;
  std::vector<int> pids;
  for (const core::Holder& holder : state.holders) grants.push_back(holder.grant);
  for (const auto& other : (*now)->holders) {
    const bool hit = std::find(grants.begin(), grants.end(), other.holder.grant) != grants.end();
    if (hit && grants_.table().find(key, other.holder.grant) == nullptr && other.pid != 0) {
      pids.push_back(other.pid);
    }
  }
  changed(key);
  if (auto done = queries_.revoke(lock_key, grants, request.reason, deadline_); !done) {
    return done.error();
  }
  for (const GrantId grant : grants) {
    GrantEntry* entry = grants_.table().find(key, grant);
    if (entry == nullptr) continue;
    entry->holder.revoked = true;
    entry->holder.reason = request.reason;
    grants_.wake(*entry);
    if (request.immediately) grants_.drop(*entry, "broken", deadline_);
  }
  if (request.immediately) {
    if (auto done = queries_.terminate(lock_key, grants, pids, deadline_); !done) {
      if (done.error().code != Code::unauthorized) return done.error();
      return outcome(Outcome::denied,
                     "its session belongs to another role: only a superuser, that role or a member "
                     "of pg_signal_backend can end it");
    }
  }
  settle(key);
  return reply;
}

}  // namespace baton::store::postgres_advisory
