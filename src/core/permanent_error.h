#pragma once

#include "baton/result.h"

namespace baton {

// Errors that no retry cures: the request is not valid, or this store refuses it under the policy
// that this process knows. Any other error is a store in trouble, which passes.
[[nodiscard]] inline bool is_permanent(const Error& error) {
  switch (error.code) {
    case Code::bad_name:
    case Code::bad_request:
    case Code::bad_url:
    case Code::denied:
    case Code::unsupported: return !error.retryable;
    default: return false;
  }
}

}  // namespace baton
