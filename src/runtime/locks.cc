#include "baton/locks.h"

#include "baton/observe.h"
#include "core/bad_request.h"
#include "policy/apply_policy.h"
#include "runtime/client.h"
#include "runtime/deadline.h"
#include "runtime/inherited.h"

namespace baton {
namespace {

Request look_at(std::string key) {
  Request request;
  request.verb = Verb::get;
  request.targets = {{std::move(key), Mode::X}};
  return request;
}

}  // namespace

Result<LockClient> LockClient::make(std::shared_ptr<LockStore> store, ClientOptions options) {
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  auto policy =
      policy::read_policy(*store, runtime::deadline_after(clock.now(), options.open_timeout));
  if (!policy) return policy.error();
  if (options.observer != nullptr) {
    store = observed(std::move(store), [observer = options.observer](const StoreCall& call) {
      observer->called(call);
    });
  }
  return LockClient(Core::make(std::move(store), std::move(options), std::move(*policy)));
}

Result<Lease> LockClient::acquire(const LockName& name, const AcquireOptions& options) {
  return core_->acquire(std::vector<LockName>(1, name), options);
}

Result<Lease> LockClient::acquire_all(const std::vector<LockName>& set,
                                      const AcquireOptions& options) {
  return core_->acquire(set, options);
}

Result<Lease> LockClient::try_acquire(const LockName& name, AcquireOptions options) {
  options.wait = Millis(0);
  return core_->acquire(std::vector<LockName>(1, name), options);
}

void LockClient::acquire_async(std::vector<LockName> set, AcquireOptions options,
                               std::function<void(Result<Lease>)> then) {
  core_->acquire_async(std::move(set), std::move(options), std::move(then));
}

void LockClient::ask_together(const std::function<void()>& ask) {
  const auto core = core_;  // `ask` may destroy this client
  if (core->inherited()) return ask();
  core->async_batcher().gather(ask);
}

Result<Page<LockInfo>> LockClient::find(const Query& query, Millis timeout) {
  if (core_->inherited()) return runtime::client_of_parent();
  if (query.mode && !is_mode(*query.mode)) return bad_request("unknown mode");
  return core_->store().find(query, runtime::deadline_after(core_->clock().now(), timeout));
}

Result<LockInfo> LockClient::get(const LockName& name, Millis timeout) {
  if (core_->inherited()) return runtime::client_of_parent();
  if (auto ok = validate(name); !ok) return ok.error();
  Request look = look_at(key_of(core_->policy(), name));
  auto reply = core_->submit(look, runtime::deadline_after(core_->clock().now(), timeout));
  if (!reply) return reply.error();
  // The name is blocked at the moment, or damaged.
  if (!reply->info) return runtime::error_of(*reply, look);
  return std::move(*reply->info);
}

Result<std::vector<LockInfo>> LockClient::get_all(const std::vector<LockName>& names,
                                                  Millis timeout) {
  if (core_->inherited()) return runtime::client_of_parent();
  std::vector<Request> looks;
  for (const LockName& name : names) {
    if (auto ok = validate(name); !ok) return ok.error();
    looks.push_back(look_at(key_of(core_->policy(), name)));
  }
  std::vector<LockInfo> found;
  if (looks.empty()) return found;
  auto replies =
      core_->store().apply(looks, runtime::deadline_after(core_->clock().now(), timeout));
  if (!replies) return replies.error();
  for (std::size_t i = 0; i < looks.size(); ++i) {
    Reply& reply = replies->at(i);
    if (!reply.info) return runtime::error_of(reply, looks[i]);
    found.push_back(std::move(*reply.info));
  }
  return found;
}

Result<std::vector<HolderInfo>> LockClient::break_lock(const LockName& name,
                                                       const BreakOptions& options) {
  if (core_->inherited()) return runtime::client_of_parent();
  if (auto ok = validate(name); !ok) return ok.error();
  if (options.reason.empty()) {
    return bad_request("breaking a lock needs a reason");
  }
  Request request = look_at(key_of(core_->policy(), name));
  request.verb = Verb::break_;
  request.grant = options.only;
  request.reason = options.reason;
  request.immediately = options.immediately;
  auto reply = core_->submit(request, core_->clock().now() + core_->request_limit());
  if (!reply) return reply.error();
  if (reply->outcome != Outcome::done) return runtime::error_of(*reply, request);
  std::vector<HolderInfo> hit = std::move(reply->holders);
  if (options.immediately) return hit;
  // A holder that has released keeps the name only for its at_least_for time and acknowledges
  // nothing, so end it at once.
  request.immediately = true;
  for (const HolderInfo& holder : hit) {
    if (!holder.released) continue;
    request.grant = holder.grant;
    auto ended = core_->submit(request, core_->clock().now() + core_->request_limit());
    if (!ended) return ended.error();
    if (ended->outcome != Outcome::done) return runtime::error_of(*ended, request);
  }
  return hit;
}

Result<void> LockClient::finish(Lease& lease) {
  return lease.held_ == nullptr ? Result<void>() : lease.held_->finish();
}

bool LockClient::inherited() const { return core_->inherited(); }
const Policy& LockClient::policy() const { return core_->policy(); }
const std::string& LockClient::owner() const { return core_->owner(); }
Capabilities LockClient::capabilities() const { return core_->can(); }

}  // namespace baton
