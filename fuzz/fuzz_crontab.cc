// Crontabs for `baton cron --import`, of a user and with a field for users.

#include <algorithm>

#include "cli/cron/cron_file.h"
#include "cli/cron/crontab_import.h"
#include "fuzz.h"

namespace baton::fuzz {
namespace {

void import(std::string_view text, const cli::CrontabSource& source) {
  const auto one_line = [](const std::string& told) {
    promise(told.find('\n') == std::string::npos, "what is said is one line");
  };
  const auto made = cli::import_crontab(text, source);
  if (!made) return one_line(made.error().message);
  std::for_each(made->problems.begin(), made->problems.end(), one_line);
  const auto jobs = cli::parse_cron_file(made->yaml);
  promise(jobs && jobs->size() == made->jobs, "what comes of it is a file with as many jobs");
  promise(made->first_words.size() == made->jobs, "each job has a first word, or an empty one");
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = baton::fuzz::text_of(data, size);
  baton::fuzz::import(text, {.home = "/srv/shop", .time_zone = "UTC"});
  baton::fuzz::import(text, {.has_users = true, .user = "root", .time_zone = "Europe/Berlin"});
  return 0;
}
