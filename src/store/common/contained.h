#pragma once

#include <exception>
#include <string>

#include "baton/result.h"

namespace baton::store {

// Runs the work of one call of a store. An answer that cannot be read is the fault of the store at
// `location`, not of the caller, so no exception gets past here.
template <typename Work>
auto contained(const std::string& location, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_store,
                 .message = location + ": an answer that cannot be read: " + problem.what(),
                 .in_doubt = true};
  }
}

}  // namespace baton::store
