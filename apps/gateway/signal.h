#pragma once

#include <string>
#include <string_view>

#include "apps/gateway/objects.h"
#include "baton/name.h"
#include "baton/result.h"

namespace baton::gateway {

// A report that something is wrong with a target.
struct Signal {
  std::string alert;
  Target target;
  std::string fingerprint;  // equal for reports of the same
  std::string document;     // JSON: all that was reported
};

// From JSON:
//
//   {"alertName": "HighMemory", "resource": {"kind": "Deployment", "name": "cart"},
//    "namespace": "shop", "severity": "critical", "labels": {…}, "annotations": {…},
//    "fingerprint": …}
//
// alertName and resource are required; a field that is not listed here is an error, because a
// mistyped one would go unnoticed. Errors are bad_request, in words for the sender.
[[nodiscard]] Result<Signal> parse_signal(std::string_view json);

// SHA-256 over alert, namespace, kind and name, with a ':' between them.
[[nodiscard]] std::string fingerprint_of(std::string_view alert, const Target& target);

// The locks of the two services. They are short enough and made of safe characters on every store.
[[nodiscard]] LockName signal_lock(const std::string& fingerprint);
[[nodiscard]] LockName target_lock(const Target& target);

}  // namespace baton::gateway
