#include "apps/gateway/kubernetes_resource.h"

#include <algorithm>
#include <random>
#include <thread>

#include "apps/gateway/log.h"

namespace baton::gateway {
namespace {

using store::kubernetes::ApiCall;

constexpr Millis kLimit{5000};
constexpr int kPage = 500;
constexpr std::size_t kMostListed = 20'000;
constexpr const char* kGroup = "remediation.baton.dev";

const char* plural(const RemediationRequest*) { return "remediationrequests"; }
const char* plural(const WorkflowExecution*) { return "workflowexecutions"; }

Deadline soon() { return BootClock::now() + kLimit; }

// A name of ours; nothing else may become a part of a path.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

// So that those who clash do not meet again.
void pause_a_little() {
  thread_local std::mt19937 random{std::random_device{}()};
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
}

Error damaged(const std::string& resource) {
  return {.code = Code::bad_store,
          .message = "what the API server sent is none of our " + resource +
                     "; is deploy/kubernetes/crds.yaml of another version?"};
}

}  // namespace

template <typename Object>
KubernetesResource<Object>::KubernetesResource(store::kubernetes::ApiServer& server)
    : server_(server),
      resource_(std::string(plural(static_cast<const Object*>(nullptr))) + "." + kGroup),
      path_(std::string("/apis/") + kGroup + "/v1alpha1/namespaces/" + server.space() + "/" +
            plural(static_cast<const Object*>(nullptr))) {}

// Once: the orchestrator comes by ten times a second.
template <typename Object>
void KubernetesResource<Object>::skip(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (skipped_.size() >= kMostListed || !skipped_.insert(name).second) return;
  }
  log().warn("an object cannot be read and is left alone",
             {{"resource", resource_}, {"object", name}});
}

template <typename Object>
Result<std::optional<Record<Object>>> KubernetesResource<Object>::get(const std::string& name) {
  if (!is_name(name)) return std::optional<Record<Object>>();
  const ApiCall call{
      .verb = "get", .method = "GET", .path = path_ + "/" + name, .resource = resource_};
  const auto response = server_.send(call, soon());
  if (!response) return response.error();
  if (response->status == 404) return std::optional<Record<Object>>();
  if (!response->ok()) return server_.refusal(call, *response);
  auto record = parse_record<Object>(response->body);
  if (!record) skip(name);
  return record;
}

template <typename Object>
Result<std::vector<Record<Object>>> KubernetesResource<Object>::list(const std::string& selector,
                                                                     const When& when) {
  std::string query = "?limit=" + std::to_string(kPage);
  if (!selector.empty()) query += "&labelSelector=" + selector;
  if (when.kind == When::Kind::lately) query += "&resourceVersion=0";
  if (when.kind == When::Kind::at) {
    query += "&resourceVersionMatch=Exact&resourceVersion=" + when.version;
  }
  std::vector<Record<Object>> records;
  const Deadline deadline = soon();
  for (std::string more; records.size() < kMostListed;) {
    // What continues a list says by itself as of when.
    const bool first = more.empty();
    const ApiCall call{
        .verb = "list",
        .method = "GET",
        .path = path_ + (first ? query
                               : "?limit=" + std::to_string(kPage) + "&labelSelector=" + selector +
                                     "&continue=" + more),
        .resource = resource_};
    const auto response = server_.send(call, deadline);
    if (!response) return response.error();
    if (response->status == 404) {
      return Error{.code = Code::bad_store,
                   .message = "the API server knows no " + resource_ +
                              ": apply deploy/kubernetes/crds.yaml"};
    }
    if (!response->ok()) return server_.refusal(call, *response);
    auto page = parse_page<Object>(response->body);
    if (!page) return damaged(resource_);
    for (const auto& name : page->unreadable) skip(name);
    std::move(page->records.begin(), page->records.end(), std::back_inserter(records));
    more = page->next;
    if (more.empty()) break;
  }
  return records;
}

template <typename Object>
Result<std::optional<Record<Object>>> KubernetesResource<Object>::create(const Object& object,
                                                                         const Guard& guard) {
  const Deadline deadline = soon();
  const ApiCall call{.verb = "create",
                     .method = "POST",
                     .path = path_,
                     .body = print_object(object, guard),
                     .writes = true,
                     .resource = resource_};
  const auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (response->status == 409) return std::optional<Record<Object>>();
  if (!response->ok()) return server_.refusal(call, *response);
  auto record = parse_record<Object>(response->body);
  if (!record) return damaged(resource_);
  return record;
}

template <typename Object>
Result<std::optional<Record<Object>>> KubernetesResource<Object>::change(const std::string& name,
                                                                         const Decide& decide) {
  const std::string what = resource_ + "/status";
  for (const Deadline deadline = soon();; pause_a_little()) {
    auto record = get(name);
    if (!record || !*record) return record;
    const auto wanted = decide(**record);
    if (!wanted) return std::optional<Record<Object>>();
    const ApiCall call{.verb = "patch",
                       .method = "PATCH",
                       .path = path_ + "/" + name + "/status",
                       .body = print_change(*wanted, (*record)->version),
                       .writes = true,
                       .resource = what};
    const auto response = server_.send(call, deadline);
    if (!response) return response.error();
    if (response->status == 404) return std::optional<Record<Object>>();
    if (response->status == 409 && BootClock::now() < deadline) continue;
    if (!response->ok()) return server_.refusal(call, *response);
    auto changed = parse_record<Object>(response->body);
    if (!changed) return damaged(resource_);
    return changed;
  }
}

template <typename Object>
Result<void> KubernetesResource<Object>::put_away(const std::string& name) {
  const Deadline deadline = soon();
  const ApiCall call{.verb = "patch",
                     .method = "PATCH",
                     .path = path_ + "/" + name,
                     .body = print_put_away(),
                     .writes = true,
                     .resource = resource_};
  const auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (!response->ok() && response->status != 404) return server_.refusal(call, *response);
  return {};
}

template <typename Object>
Result<bool> KubernetesResource<Object>::remove(const Record<Object>& record) {
  const Deadline deadline = soon();
  const ApiCall call{.verb = "delete",
                     .method = "DELETE",
                     .path = path_ + "/" + record.object.name,
                     .body = print_removal(record.uid),
                     .writes = true,
                     .resource = resource_};
  const auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404 || response->status == 409) return false;
  if (!response->ok()) return server_.refusal(call, *response);
  return true;
}

template class KubernetesResource<RemediationRequest>;
template class KubernetesResource<WorkflowExecution>;

}  // namespace baton::gateway
