#pragma once

// The keys of a job of `baton cron` that say what it runs and how.

#include <string_view>

#include "cli/cron/cron_file.h"
#include "policy/yaml.h"

namespace baton::cli {

[[nodiscard]] bool is_command_key(std::string_view key);
[[nodiscard]] Result<void> read_command_key(const policy::YamlNode& item, CronCommand& command);

// Checks that need the whole command of `job`.
[[nodiscard]] Result<void> check_command(const policy::YamlNode& job, const CronCommand& command);

[[nodiscard]] Result<int> read_number(const policy::YamlNode& item, int least, int most);

}  // namespace baton::cli
