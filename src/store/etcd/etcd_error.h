#pragma once

#include "baton/result.h"
#include "store/etcd/wire.h"

namespace baton::store::etcd {

// The error that etcd's refusal means to a caller of Baton. It is `unavailable` and retryable if
// another member, or the same one after a while, may answer; not if an operator must act. in_doubt:
// a write may have happened all the same.
[[nodiscard]] Error error_for(const wire::Problem& problem, int http_status, bool writes);

// The session has ended, and the user has to log in again.
[[nodiscard]] bool must_log_in(const wire::Problem& problem);

// The lease of a request is not there, or not any more.
[[nodiscard]] bool is_lease_gone(const wire::Problem& problem);

// The request is more than etcd takes at once.
[[nodiscard]] bool is_too_large(const wire::Problem& problem);

// The space quota is used up: nothing new is taken, but what is there can be removed.
[[nodiscard]] bool is_full(const Error& error);

}  // namespace baton::store::etcd
