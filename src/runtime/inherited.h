#pragma once

// A forked child must not use the clients and leases of its parent: their threads do not exist in
// the child, a mutex may be locked for ever, and the connections belong to the parent. For the same
// reasons they are never destroyed in the child.

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

// Keeps a reference, so that a leak checker does not report the object.
inline void keep_for_ever(std::shared_ptr<void> object) {
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  kept->push_back(std::move(object));
}

}  // namespace baton::runtime
