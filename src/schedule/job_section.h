#pragma once

// The keys that a job has in YAML, for the files that configure jobs: job_config.h and those of
// `baton cron`. Errors are one line, with its number.

#include <string>

#include "baton/job_config.h"
#include "policy/yaml.h"

namespace baton::schedule {

// "line 3: every must be a duration, not a list".
[[nodiscard]] BATON_EXPORT Error expected(const policy::YamlNode& node, const std::string& what);

// Milliseconds as a bare number, or a duration with its unit; at most a year.
[[nodiscard]] BATON_EXPORT Result<Millis> read_duration(const policy::YamlNode& node,
                                                        bool zero_too);

// The lock's TTL: as a duration, and not so short that it leaves no time to renew it.
[[nodiscard]] BATON_EXPORT Result<void> read_lock_ttl(const policy::YamlNode& node,
                                                      JobSection& section);

// One key of a section and its value. An unknown key is an error that names the nearest one.
[[nodiscard]] BATON_EXPORT Result<void> read_key(const policy::YamlNode& item, JobSection& section);

// Checks that need the whole section.
[[nodiscard]] BATON_EXPORT Result<void> check_section(const JobSection& section);

// Of a section that has one of fixed-delay, fixed-rate and cron.
[[nodiscard]] BATON_EXPORT Result<Schedule> schedule_of(const JobSection& section,
                                                        const std::string& time_zone);

// Changes `options` by the keys that the section has.
BATON_EXPORT void apply(const JobSection& section, JobOptions& options);

}  // namespace baton::schedule
