#pragma once

// What a forked child does with the clients and leases of its parent: nothing. Their threads are
// not there, a mutex may be locked for ever, and their connections are the parent's, so they are
// never destroyed either.

#include <memory>
#include <vector>

#include "baton/result.h"

namespace baton::runtime {

inline Error client_of_parent() {
  return {.code = Code::bad_request,
          .message =
              "this client was made before a fork, by the parent of this process: open one "
              "in the child"};
}

inline constexpr const char* kLeaseOfParent =
    "it belongs to the parent of this process, which made it before the fork";

// Where a leak checker finds it.
inline void keep_for_ever(std::shared_ptr<void> object) {
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  kept->push_back(std::move(object));
}

}  // namespace baton::runtime
