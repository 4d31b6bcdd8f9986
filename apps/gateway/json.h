#pragma once

// What the services answer.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/gateway/objects.h"
#include "http/message.h"

namespace baton::gateway {

[[nodiscard]] std::string to_json(const RemediationRequest& request);
[[nodiscard]] std::string to_json(const WorkflowExecution& execution);
[[nodiscard]] std::string to_json(const std::vector<RemediationRequest>& requests);
[[nodiscard]] std::string to_json(const std::vector<WorkflowExecution>& executions);

// The answer to a signal: 201 for a new request, 202 for one that was there.
[[nodiscard]] http::Response created(const RemediationRequest& request);
[[nodiscard]] http::Response duplicate(const RemediationRequest& request, std::int64_t duplicates);

// The answer to a notification, of the answers to its signals.
[[nodiscard]] http::Response notified(
    const std::vector<std::pair<std::string, http::Response>>& alerts);

// The phase in {"phase": …}; nothing unless it is one that ends an execution.
[[nodiscard]] std::optional<Phase> parse_ending(std::string_view json);

// 503 with Retry-After. The client is told what to do; the log, what was wrong.
[[nodiscard]] http::Response unavailable(std::string_view what, const Error& error);

}  // namespace baton::gateway
