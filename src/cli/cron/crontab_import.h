#pragma once

// A crontab as a file of `baton cron`. What cron does of itself is written out: the directory, the
// time zone, and that a run that was missed or cut off is not made up for.

#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"

namespace baton::cli {

struct CrontabSource {
  bool has_users = false;  // /etc/crontab and /etc/cron.d: the sixth field is a user
  std::string user;        // whose entries are taken, of one with users
  std::string home;        // where cron starts the commands, unless the crontab sets HOME
  std::string time_zone;   // of cron, unless the crontab sets CRON_TZ
};

struct ImportedCrontab {
  std::string yaml;
  std::size_t jobs = 0;
  std::vector<std::string> problems;     // "line 3: …": what is not as it was
  std::vector<std::string> first_words;  // of the commands; "" of one with no second
};

// An error only if nothing can be imported.
[[nodiscard]] Result<ImportedCrontab> import_crontab(std::string_view text,
                                                     const CrontabSource& source);

// Where this machine keeps the time; UTC if it does not say.
[[nodiscard]] std::string local_time_zone();

}  // namespace baton::cli
