#pragma once

#include <string>

namespace baton::warehouse {

// A log line of the scheduler in the words of the observers. The scheduler speaks of jobs; what
// reads the logs of the observers looks for polls, such as "Completed polling for: {job}". Lines
// that speak of locks are the same in both.
[[nodiscard]] std::string observer_message(const std::string& message);

}  // namespace baton::warehouse
