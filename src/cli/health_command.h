#pragma once

#include <stop_token>
#include <string>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::cli {

// Runs `sh -c command`, in a process group of its own and without input or output. No error if it
// ends with 0 within `limit`; else it is killed, and the error says what was wrong. Ends early when
// `stop` fires.
[[nodiscard]] Result<void> run_health_command(const std::string& command, Millis limit,
                                              const std::stop_token& stop);

}  // namespace baton::cli
