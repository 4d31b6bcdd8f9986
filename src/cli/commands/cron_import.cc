// baton cron --import CRONTAB: a crontab as a file of baton cron.

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/cron/crontab_import.h"
#include "cli/file.h"
#include "cli/json_writer.h"
#include "policy/yaml.h"

namespace baton::cli {
namespace {

// The sixth field of these is a user.
bool is_of_the_system(const std::string& crontab) {
  std::error_code none;
  const auto path = std::filesystem::absolute(crontab, none).lexically_normal();
  return path == "/etc/crontab" || path.parent_path() == "/etc/cron.d";
}

// Each command begins with a user of this machine, and not all of them are programs as well, as
// `mail` and `backup` may be.
bool looks_as_with_users(const std::vector<std::string>& first_words) {
  bool no_program = false;
  for (const std::string& word : first_words) {
    if (getpwnam(word.c_str()) == nullptr) return false;
    no_program = no_program || find_program(word).exit_code != 0;
  }
  return no_program;
}

Error needs_user(const std::string& crontab) {
  return bad_request("the sixth field of " + crontab +
                     " is a user: say whose entries to take by --user NAME");
}

// Without --user the crontab is that of the user to whom the file belongs.
CrontabSource source_of(const CronArguments& arguments) {
  CrontabSource source{.has_users = !arguments.user.empty(),
                       .user = arguments.user,
                       .home = {},
                       .time_zone = local_time_zone()};
  struct stat found {};
  const bool there = arguments.import != "-" && stat(arguments.import.c_str(), &found) == 0;
  const passwd* user =
      source.has_users ? getpwnam(source.user.c_str()) : getpwuid(there ? found.st_uid : geteuid());
  if (user != nullptr) {
    source.user = user->pw_name;
    source.home = user->pw_dir;
  }
  return source;
}

// The variables of a crontab may be secrets: nobody may read the new file who could not read that.
mode_t mode_like(const std::string& crontab) {
  struct stat source {};
  return stat(crontab.c_str(), &source) == 0 ? (source.st_mode & 0644U) | 0600U : 0600U;
}

Result<void> write_new(const std::string& path, const std::string& text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0 && errno == EEXIST) {
    return bad_request(path + " is there already, and is not written over: name a new file");
  }
  if (file < 0) return bad_request("cannot write " + path + ": " + std::strerror(errno));
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  const bool complete = done == text.size() && fsync(file) == 0;
  const int problem = errno;
  close(file);
  if (complete) return {};
  unlink(path.c_str());
  return bad_request("cannot write " + path + ": " + std::strerror(problem));
}

}  // namespace

Result<int> cron_import(Context& context, const CronArguments& arguments) {
  const bool no_user = arguments.user.empty();
  if (no_user && is_of_the_system(arguments.import)) return needs_user(arguments.import);
  const auto text = read_file(arguments.import, policy::kMaxYamlBytes);
  if (!text) return text.error();
  const auto made = import_crontab(*text, source_of(arguments));
  if (!made) return bad_request(arguments.import + ": " + made.error().message);
  if (no_user && looks_as_with_users(made->first_words)) return needs_user(arguments.import);
  if (!arguments.output.empty()) {
    auto written = write_new(arguments.output, made->yaml, mode_like(arguments.import));
    if (!written) return written.error();
  }
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("jobs", static_cast<std::int64_t>(made->jobs));
    if (arguments.output.empty()) json.field("yaml", made->yaml);
    json.key("problems").begin_array();
    for (const std::string& problem : made->problems) json.value(problem);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  for (const std::string& problem : made->problems) context.out.warning(printable(problem));
  if (arguments.output.empty()) {
    context.out.line(made->yaml.substr(0, made->yaml.size() - 1));
  } else {
    context.out.line(fmt::format("{} has {} of its jobs", arguments.output, made->jobs));
  }
  return exit_code::ok;
}

}  // namespace baton::cli
