#pragma once

// What Prometheus' Alertmanager sends to a webhook receiver (version 4).

#include <string>
#include <string_view>
#include <vector>

#include "apps/gateway/signal.h"

namespace baton::gateway {

struct Alert {
  std::string name;       // for the answer; empty if the alert has none
  Result<Signal> signal;  // an error: why no signal can be made of it
};

// The firing alerts of a notification; those that are resolved ask for nothing. An error if the
// body is no notification, or has more than 256 alerts.
//
// The target of an alert is said by its labels: `kind` and `name`, or the first there is of
// deployment, statefulset, daemonset, job_name, pod, persistentvolumeclaim, service, node and
// instance; with its `namespace`. The fingerprint is that of alert and target: alerts that differ
// in other labels ask for the same.
[[nodiscard]] Result<std::vector<Alert>> parse_notification(std::string_view json);

}  // namespace baton::gateway
