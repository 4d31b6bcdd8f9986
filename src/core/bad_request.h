#pragma once

#include <string>
#include <utility>

#include "baton/result.h"

namespace baton {

inline Error bad_request(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

}  // namespace baton
