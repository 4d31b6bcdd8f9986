#pragma once

// The objects of the services as custom resources; deploy/kubernetes/crds.yaml has their types.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/gateway/objects.h"

namespace baton::gateway {

// An object with what the API server adds to it.
template <typename Object>
struct Record {
  Object object;
  std::string uid;
  std::string version;
  Time finished{};
  bool put_away = false;  // has the label of those that have ended
};

template <typename Object>
struct Page {
  std::vector<Record<Object>> records;
  std::vector<std::string> unreadable;  // names of those that are none of ours
  std::string next;                     // empty at the end
};

// What is to become of the status. The rest of it stays.
struct Change {
  std::optional<Phase> phase;
  std::optional<Time> finished;
  std::optional<Time> last_seen;
  std::optional<std::int64_t> duplicates;
  std::optional<std::string> execution;
};

// A status that is not there yet is that of a new object. Nothing if it is no such object at all,
// as one that somebody made by hand with a target that is none.
template <typename Object>
[[nodiscard]] std::optional<Record<Object>> parse_record(std::string_view json);
template <typename Object>
[[nodiscard]] std::optional<Page<Object>> parse_page(std::string_view json);

[[nodiscard]] std::string print_object(const RemediationRequest& request, const Guard& guard);
[[nodiscard]] std::string print_object(const WorkflowExecution& execution, const Guard& guard);

// A merge patch that the server takes only if the object still has this version.
[[nodiscard]] std::string print_change(const Change& change, const std::string& version);
[[nodiscard]] std::string print_put_away();
// Deletes this one, not another one of its name.
[[nodiscard]] std::string print_removal(const std::string& uid);

// Selectors of labels, encoded for a URL.
[[nodiscard]] std::string select_active();
[[nodiscard]] std::string select_ended();
[[nodiscard]] std::string select_active_of(const std::string& fingerprint);
[[nodiscard]] std::string select_active_of(const Target& target);

}  // namespace baton::gateway
