#include "apps/gateway/kubernetes_objects.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "apps/gateway/kubernetes_resource.h"
#include "apps/gateway/tally.h"

namespace baton::gateway {
namespace {

constexpr std::size_t kForgetAtOnce = 1000;

using Requests = KubernetesResource<RemediationRequest>;
using Executions = KubernetesResource<WorkflowExecution>;

template <typename Object>
bool older(const Record<Object>& one, const Record<Object>& other) {
  return std::tie(one.object.created, one.object.name) <
         std::tie(other.object.created, other.object.name);
}

template <typename Object>
Result<std::optional<Object>> plain(Result<std::optional<Record<Object>>> record) {
  if (!record) return record.error();
  if (!*record) return std::optional<Object>();
  return std::optional<Object>(std::move((*record)->object));
}

// The oldest active one that `is_one` knows.
template <typename Object, typename IsOne>
std::optional<Object> oldest(std::vector<Record<Object>> records, IsOne is_one) {
  std::optional<Record<Object>> found;
  for (auto& record : records) {
    if (!is_active(record.object.phase) || !is_one(record.object)) continue;
    if (!found || older(record, *found)) found = std::move(record);
  }
  if (!found) return std::nullopt;
  return std::move(found->object);
}

// An API server cannot write one object on condition of another. But it orders all writes: if, at
// the moment when ours was made, there was another active one, then the maker of that one was
// faster although we had the lock, so it was ours no more. Ours goes, and the first one stays.
//
// Without an answer ours may stay as well. It is not deleted on suspicion: if there is no other, as
// nearly always, somebody may have been told meanwhile that it was counted there.
template <typename Object, typename IsRival>
Result<bool> create_first(KubernetesResource<Object>& resource, const Object& object,
                          const std::string& selector, const Guard& guard, IsRival is_rival) {
  auto made = resource.create(object, guard);
  if (!made) return made.error();
  if (!*made) return false;
  auto then = resource.list(selector, KubernetesResource<Object>::at((*made)->version));
  if (!then) return then.error();
  const auto rival = oldest(std::move(*then), [&](const Object& other) {
    return other.name != object.name && is_rival(other);
  });
  if (!rival) return true;
  if (auto gone = resource.remove(**made); !gone) return gone.error();
  return Error{.code = Code::fenced,
               .message = rival->name + " was made before " + object.name +
                          " by somebody else: this lock was lost"};
}

class KubernetesObjects final : public ObjectStore {
 public:
  explicit KubernetesObjects(const store::kubernetes::Cluster& cluster)
      : server_(cluster), requests_(server_), executions_(server_) {}

  Result<void> open() {
    if (auto listed = requests_.list(select_active(), Requests::lately()); !listed) {
      return listed.error();
    }
    if (auto listed = executions_.list(select_active(), Executions::lately()); !listed) {
      return listed.error();
    }
    return {};
  }

  Result<std::optional<RemediationRequest>> request(const std::string& name) override {
    return plain(requests_.get(name));
  }

  Result<std::optional<RemediationRequest>> active_request(
      const std::string& fingerprint) override {
    auto listed = requests_.list(select_active_of(fingerprint), Requests::now());
    if (!listed) return listed.error();
    return oldest(std::move(*listed), [&](const RemediationRequest& request) {
      return request.fingerprint == fingerprint;
    });
  }

  Result<std::vector<RemediationRequest>> requests(std::optional<Phase> phase,
                                                   std::size_t limit) override {
    return newest(requests_, phase, limit);
  }

  Result<void> overtake(const Guard&) override { return {}; }

  Result<bool> create(const RemediationRequest& request, const Guard& guard) override {
    return create_first(
        requests_, request, select_active_of(request.fingerprint), guard,
        [&](const RemediationRequest& other) { return other.fingerprint == request.fingerprint; });
  }

  Result<std::optional<std::int64_t>> count_duplicate(const std::string& name, Time now) override {
    return tally_.add(name, [&](std::int64_t more) -> Tally::Count {
      auto changed = requests_.change(
          name, [&](const Record<RemediationRequest>& request) -> std::optional<Change> {
            if (!is_active(request.object.phase)) return std::nullopt;
            return Change{.last_seen = std::max(now, request.object.last_seen),
                          .duplicates = request.object.duplicates + more};
          });
      if (!changed) return changed.error();
      if (!*changed) return std::optional<std::int64_t>();
      return std::optional<std::int64_t>((*changed)->object.duplicates);
    });
  }

  Result<std::vector<RemediationRequest>> startable_requests(std::size_t limit) override {
    auto requests = requests_.list(select_active(), Requests::lately());
    if (!requests) return requests.error();
    auto executions = executions_.list(select_active(), Executions::lately());
    if (!executions) return executions.error();
    std::map<Target, std::string> busy;
    for (const auto& execution : *executions) {
      if (is_active(execution.object.phase)) {
        busy[execution.object.target] = execution.object.request;
      }
    }
    std::sort(requests->begin(), requests->end(), older<RemediationRequest>);
    std::set<Target> seen;
    std::vector<RemediationRequest> startable;
    for (auto& [request, uid, version, finished, put_away] : *requests) {
      if (request.phase != Phase::pending || !seen.insert(request.target).second) continue;
      const auto running = busy.find(request.target);
      if (running != busy.end() && running->second != request.name) continue;
      startable.push_back(std::move(request));
      if (startable.size() == limit) break;
    }
    return startable;
  }

  Result<void> set_running(const std::string& request, const std::string& execution,
                           const Guard&) override {
    auto changed = requests_.change(
        request, [&](const Record<RemediationRequest>& found) -> std::optional<Change> {
          if (found.object.phase != Phase::pending) return std::nullopt;
          return Change{.phase = Phase::running, .execution = execution};
        });
    if (!changed) return changed.error();
    return {};
  }

  // Also puts away what ended when its writer died before it could.
  Result<std::size_t> conclude_requests(Time now) override {
    auto requests = requests_.list(select_active(), Requests::lately());
    if (!requests) return requests.error();
    auto executions = executions_.list(select_active(), Executions::lately());
    if (!executions) return executions.error();
    std::set<std::string> running;
    for (const auto& [execution, uid, version, finished, put_away] : *executions) {
      if (is_active(execution.phase)) {
        running.insert(execution.name);
      } else if (auto done = executions_.put_away(execution.name); !done) {
        return done.error();
      }
    }
    std::size_t concluded = 0;
    for (const auto& [request, uid, version, finished, put_away] : *requests) {
      if (!is_active(request.phase)) {
        if (auto done = requests_.put_away(request.name); !done) return done.error();
      } else if (request.phase == Phase::running && !running.contains(request.execution)) {
        auto ended = conclude(request, now);
        if (!ended) return ended.error();
        concluded += *ended ? 1 : 0;
      }
    }
    return concluded;
  }

  Result<std::optional<WorkflowExecution>> execution(const std::string& name) override {
    return plain(executions_.get(name));
  }

  Result<std::optional<WorkflowExecution>> active_execution(const Target& target) override {
    auto listed = executions_.list(select_active_of(target), Executions::now());
    if (!listed) return listed.error();
    return oldest(std::move(*listed),
                  [&](const WorkflowExecution& execution) { return execution.target == target; });
  }

  Result<std::vector<WorkflowExecution>> executions(std::optional<Phase> phase,
                                                    std::size_t limit) override {
    return newest(executions_, phase, limit);
  }

  Result<bool> create(const WorkflowExecution& execution, const Guard& guard) override {
    return create_first(
        executions_, execution, select_active_of(execution.target), guard,
        [&](const WorkflowExecution& other) { return other.target == execution.target; });
  }

  Result<bool> finish_execution(const std::string& name, Phase phase, Time now) override {
    return end(executions_, name, phase, now);
  }

  Result<std::size_t> forget(Time before) override {
    auto requests = requests_.list(select_ended(), Requests::lately());
    if (!requests) return requests.error();
    auto executions = executions_.list(select_ended(), Executions::lately());
    if (!executions) return executions.error();
    std::size_t forgotten = 0;
    std::set<std::string> kept;
    for (const auto& request : *requests) {
      if (request.finished >= before || forgotten >= kForgetAtOnce) {
        kept.insert(request.object.name);
        continue;
      }
      auto gone = requests_.remove(request);
      if (!gone) return gone.error();
      forgotten += *gone ? 1 : 0;
    }
    for (const auto& execution : *executions) {
      if (execution.finished >= before || kept.contains(execution.object.request)) continue;
      if (forgotten >= kForgetAtOnce) break;
      auto gone = executions_.remove(execution);
      if (!gone) return gone.error();
      forgotten += *gone ? 1 : 0;
    }
    return forgotten;
  }

 private:
  template <typename Object>
  static Result<std::vector<Object>> newest(KubernetesResource<Object>& resource,
                                            std::optional<Phase> phase, std::size_t limit) {
    const bool active = phase && is_active(*phase);
    auto listed =
        resource.list(active ? select_active() : std::string(), KubernetesResource<Object>::now());
    if (!listed) return listed.error();
    std::sort(listed->begin(), listed->end(),
              [](const auto& one, const auto& other) { return older(other, one); });
    std::vector<Object> found;
    for (auto& record : *listed) {
      if (found.size() == limit) break;
      if (!phase || record.object.phase == *phase) found.push_back(std::move(record.object));
    }
    return found;
  }

  // False: it had ended before, or is not there.
  template <typename Object>
  static Result<bool> end(KubernetesResource<Object>& resource, const std::string& name,
                          Phase phase, Time now) {
    auto changed = resource.change(name, [&](const Record<Object>& found) -> std::optional<Change> {
      if (!is_active(found.object.phase)) return std::nullopt;
      return Change{.phase = phase, .finished = now};
    });
    if (!changed) return changed.error();
    if (!*changed) return false;
    if (auto done = resource.put_away(name); !done) return done.error();
    return true;
  }

  Result<bool> conclude(const RemediationRequest& request, Time now) {
    auto execution = executions_.get(request.execution);
    if (!execution) return execution.error();
    if (!*execution || is_active((*execution)->object.phase)) return false;
    return end(requests_, request.name, (*execution)->object.phase, now);
  }

  store::kubernetes::ApiServer server_;
  Requests requests_;
  Executions executions_;
  Tally tally_;
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_kubernetes_objects(std::string_view url) {
  const auto cluster =
      store::kubernetes::find_cluster(url, store::kubernetes::process_surroundings());
  if (!cluster) return cluster.error();
  auto objects = std::make_unique<KubernetesObjects>(*cluster);
  if (auto opened = objects->open(); !opened) return opened.error();
  return std::unique_ptr<ObjectStore>(std::move(objects));
}

}  // namespace baton::gateway
