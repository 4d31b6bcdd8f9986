// baton cron: the commands of a file, on a schedule, each on one machine of the fleet.

#include <poll.h>

#include <array>
#include <csignal>
#include <utility>

#include <fmt/core.h>

#include "baton/job_metrics.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/cron/command_job.h"
#include "cli/cron/cron_check.h"
#include "cli/cron/cron_file.h"
#include "cli/cron/cron_log.h"
#include "cli/cron/file_watch.h"
#include "cli/cron/job_set.h"
#include "cli/open_client.h"
#include "cli/signals.h"
#include "cli/store_wait.h"

namespace baton::cli {
namespace {

// A command that is asked to end has its own grace, and is killed after it. This only bounds what
// nobody has thought of; a second signal ends baton at once.
constexpr Millis kStopWithin{24 * 3'600'000};
constexpr const char* kLogger = "baton.cron";

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// From a file to the scheduler, at the start and whenever the file changes.
class Reloader {
 public:
  // `node`: what the user calls this machine, if anything.
  Reloader(std::filesystem::path path, std::string node, JobSet& jobs, LogQueue& log)
      : path_(std::move(path)), node_(std::move(node)), jobs_(jobs), log_(log) {}

  void reload() {
    auto read = load_cron_file(path_);
    if (read) return apply(*read);
    log_.write(observe::LogLevel::error, kLogger, "FILE_REFUSED",
               {{"detail", read.error().message}, {"jobs", "as before"}});
  }

  void apply(const std::vector<CronJob>& jobs) {
    const auto changes = jobs_.apply(jobs);
    for (const std::string& why : changes.refused) {
      log_.write(observe::LogLevel::error, kLogger, "JOB_REFUSED", {{"detail", why}});
    }
    log_.write(observe::LogLevel::info, kLogger, "FILE_LOADED",
               {{"jobs", std::to_string(jobs_.size())},
                {"added", joined(changes.added)},
                {"changed", joined(changes.changed)},
                {"removed", joined(changes.removed)}});
    for (const CronJob& job : jobs) {
      const std::string why = why_not_here(job, node_);
      // Of a machine with a name it is as the file says; of one without it can only be forgotten.
      const auto level = node_.empty() ? observe::LogLevel::warn : observe::LogLevel::info;
      if (!why.empty())
        log_.write(level, kLogger, "JOB_NOT_HERE", {{"job", job.name}, {"detail", why}});
    }
  }

 private:
  std::filesystem::path path_;
  std::string node_;
  JobSet& jobs_;
  LogQueue& log_;
};

// Until a signal ends it, which is returned; or no command can be started any more.
Result<int> watch_file(const Signals& signals, Spawner& spawner, FileWatch& file,
                       Reloader& reloader, LogQueue& log) {
  int replaced = 0;
  while (true) {
    std::array<pollfd, 3> files{pollfd{signals.file(), POLLIN, 0}, pollfd{file.file(), POLLIN, 0},
                                pollfd{spawner.file(), 0, 0}};  // its end alone
    poll(files.data(), files.size(), static_cast<int>(file.look_within().count()));
    signalfd_siginfo signal{};
    while (signals.next(signal)) {
      const int number = static_cast<int>(signal.ssi_signo);
      if (number == SIGTSTP) raise(SIGSTOP);
      if (number == SIGHUP) {
        (void)file.changed();
        reloader.reload();
      } else if (ends(signal)) {
        return number;
      }
    }
    if (files[2].revents != 0) {
      if (auto revived = spawner.revive(); !revived) return revived.error();
    }
    const int now = spawner.replaced();
    if (std::exchange(replaced, now) != now) {
      log.write(observe::LogLevel::warn, kLogger, "SPAWNER_REPLACED",
                {{"detail", "the process that starts commands was killed, or did not answer"}});
    }
    if (file.changed()) reloader.reload();
  }
}

Result<observe::LogOptions> log_options(const CronArguments& arguments) {
  const auto format = observe::parse_log_format(arguments.log_format);
  if (!format) return bad_request("--log-format is json or text, not " + arguments.log_format);
  const auto level = observe::parse_log_level(arguments.log_level);
  if (!level) {
    return bad_request("--log-level is debug, info, warn or error, not " + arguments.log_level);
  }
  return observe::LogOptions{.service = "cron", .format = *format, .level = *level};
}

void say_started(LogQueue& log, const std::string& file, const Settings& settings) {
  if (settings.default_store) {
    log.write(observe::LogLevel::warn, kLogger, "DEFAULT_STORE",
              {{"detail",
                "no store is named: these locks are of this user on this machine, and other "
                "machines run every job too; set BATON_STORE on all of them"}});
  }
  log.write(observe::LogLevel::info, kLogger, "CRON_STARTED",
            {{"file", file}, {"store", redact_url(settings.store)}});
}

Result<int> check(Context& context, const CronArguments& arguments) {
  const auto jobs = load_cron_file(arguments.file);
  if (!jobs) return jobs.error();
  auto node = arguments.node.empty() ? resolve_owner(context) : Result<std::string>(arguments.node);
  if (!node) return node.error();
  show_cron_file(context.out, *jobs, *node, std::chrono::system_clock::now());
  return exit_code::ok;
}

}  // namespace

Result<int> cron(Context& context, const CronArguments& arguments) {
  if (!arguments.import.empty()) {
    if (arguments.file.empty()) return cron_import(context, arguments);
    return bad_request("give a FILE to run, or a crontab to --import, not both");
  }
  if (!arguments.output.empty() || !arguments.user.empty()) {
    return bad_request("--output and --user are of --import");
  }
  if (arguments.file.empty()) return bad_request("say which file: baton cron FILE");
  if (arguments.check) return check(context, arguments);
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto logging = log_options(arguments);
  if (!logging) return logging.error();
  FileWatch file(arguments.file);  // before it is read, so that no change is missed
  const auto jobs = load_cron_file(arguments.file);
  if (!jobs) return jobs.error();
  auto spawner = Spawner::start();
  if (!spawner) return spawner.error();
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to end
  const Signals signals;
  std::optional<StopOnSignal> waiting(signals);
  if (!arguments.node.empty()) settings->owner = arguments.node;
  auto opened =
      open_client(*settings, arguments.metrics, context.out, StoreWait(context.out, std::nullopt));
  if (!opened) return opened.error();

  logging->node = opened->locks.owner();
  LogQueue log(std::move(*logging));
  CronLog told(log);
  std::optional<observe::JobMetrics> counting;
  if (opened->metrics) counting.emplace(opened->metrics);
  OutputCapture output(log);
  const CommandHost host{**spawner, output, log, settings->store};
  SchedulerOptions options{.own_node = {.role = arguments.role},
                           .workers = static_cast<std::size_t>(arguments.workers),
                           .stop_within = kStopWithin,
                           .listeners = {&told}};
  if (!settings->region.empty()) options.region = settings->region;
  if (counting) options.listeners.push_back(&*counting);
  Scheduler scheduler(opened->locks, std::move(options));
  JobSet set(scheduler, [&host](const CronJob& job) -> Handler {
    return [&host, command = job.command, on_crash = job.options.on_crash](Run& run) {
      run_command(command, on_crash, host, run);
    };
  });
  Reloader reloader(arguments.file, settings->owner, set, log);
  reloader.apply(*jobs);
  if (auto started = scheduler.start(); !started) return started.error();
  waiting.reset();
  say_started(log, arguments.file, *settings);

  const auto signal = watch_file(signals, **spawner, file, reloader, log);
  log.write(observe::LogLevel::info, kLogger, "CRON_STOPPING",
            {{"running", std::to_string(scheduler.running())}});
  {
    const StopOnSignal at_once(signals);
    scheduler.stop();
  }
  log.write(observe::LogLevel::info, kLogger, "CRON_STOPPED");
  if (!signal) return signal.error();
  return exit_code::by_signal + *signal;
}

}  // namespace baton::cli
