#pragma once

#include "observe/log.h"

namespace baton::gateway {

// Once, before anybody logs. Until then log() is silent.
void open_log(observe::LogOptions options);

[[nodiscard]] const observe::Logger& log();

}  // namespace baton::gateway
