#pragma once

// Jobs as people configure them:
//
//   scheduler:
//     observer:                  # every job with the word "observer" in its name
//       fixed-delay: 30000       # milliseconds, or 30s
//       lock:
//         ttl: 60000
//     order-observer:            # more words match fewer jobs, and go before fewer words
//       enabled: false
//
// A section speaks for every job whose name contains the section's words (between dashes) in a row:
// `observer` and `order-observer` both speak for the job order-observer-poll.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule.h"
#include "baton/scheduler.h"

namespace baton {

// What one section says; what it does not say is empty.
struct JobSection {
  int line = 0;
  std::optional<Millis> fixed_delay;
  std::optional<Millis> fixed_rate;
  std::optional<Millis> phase;
  std::optional<std::string> cron;
  std::optional<std::string> time_zone;
  std::optional<Millis> lock_ttl;
  std::optional<Millis> try_for;
  std::optional<Millis> at_least_for;
  std::optional<Millis> jitter;
  std::optional<Misfire> misfire;
  std::optional<OnCrash> on_crash;
  std::optional<int> max_attempts;
  std::optional<bool> enabled;
  std::optional<std::vector<std::string>> nodes;
  std::optional<Millis> backoff;
  std::optional<Millis> backoff_most;
  std::optional<Millis> report_after;
};

struct ConfiguredJob {
  std::optional<Schedule> schedule;  // empty: the configuration says nothing about when
  JobOptions options;
};

class BATON_EXPORT JobConfig {
 public:
  // A YAML document with the key `scheduler`; other keys of the document are not looked at. Every
  // error is one line, with its number.
  static Result<JobConfig> parse(std::string_view yaml);

  // The options of `job`: `defaults`, changed by every section that speaks for it.
  [[nodiscard]] Result<ConfiguredJob> configure(std::string_view job,
                                                JobOptions defaults = {}) const;

  // An error if a section speaks for none of these jobs: it is misspelt, most likely.
  [[nodiscard]] Result<void> check(std::span<const std::string> jobs) const;

  [[nodiscard]] const std::map<std::string, JobSection>& sections() const { return sections_; }

 private:
  std::map<std::string, JobSection> sections_;
};

}  // namespace baton
