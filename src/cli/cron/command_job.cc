#include "cli/cron/command_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>

#include <fmt/core.h>

#include "cli/supervisor.h"
#include "node/wall_time.h"
#include "policy/duration.h"

namespace baton::cli {
namespace {

constexpr std::array kPassedAlways = {"HOME", "USER",   "LOGNAME", "SHELL", "LANG",
                                      "TZ",   "TMPDIR", "LC_ALL",  "PATH"};
constexpr const char* kDefaultPath = "PATH=/usr/local/bin:/usr/bin:/bin";
constexpr int kMostDoublings = 10;

// How one start of the command ended.
struct Ended {
  int code = 0;
  bool lost = false;
  bool stopped = false;
  bool timed_out = false;
  bool no_answer = false;  // from what starts commands: nothing was started
  std::string problem;     // it could not be started, or not be ended
};

// The reading end is the capture's, the writing one the command's.
class CapturedPipe {
 public:
  CapturedPipe(OutputCapture& capture, observe::LogFields fields) : capture_(capture) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw std::runtime_error(std::string("no pipe for the output: ") + std::strerror(errno));
    }
    id_ = capture.add(ends[0], std::move(fields));
    writing_ = ends[1];
  }
  ~CapturedPipe() {
    close_writing();
    capture_.finish(id_);
  }
  CapturedPipe(const CapturedPipe&) = delete;
  CapturedPipe& operator=(const CapturedPipe&) = delete;
  [[nodiscard]] int writing() const { return writing_; }
  void close_writing() {
    if (writing_ >= 0) close(writing_);
    writing_ = -1;
  }

 private:
  OutputCapture& capture_;
  OutputCapture::Id id_ = 0;
  int writing_ = -1;
};

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  }
  return {};
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const auto& one) { return one.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

std::vector<std::string> environment_for(const CronCommand& command, const Run& run, Lease& lease,
                                         int retry) {
  auto environment = command_environment(command);
  for (const std::string& variable : environment_of(lease)) environment.push_back(variable);
  set(environment, "BATON_JOB", run.job());
  set(environment, "BATON_FIRE", std::to_string(run.number()));
  set(environment, "BATON_DUE", node::print_time(run.due()));
  set(environment, "BATON_ATTEMPT", std::to_string(run.attempt()));
  set(environment, "BATON_RETRY", std::to_string(retry));
  set(environment, "BATON_NODE", run.node());
  return environment;
}

// Said before the start, because exec knows only a number for all of it.
std::string why_not(const CronCommand& command, const std::string& path, Program& program) {
  struct stat found {};
  if (!command.directory.empty() &&
      (stat(command.directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))) {
    return command.directory + " is no directory here";
  }
  const std::string& name = command.words.front();
  const bool relative = name.find('/') != std::string::npos && !name.starts_with('/');
  program = find_program(
      relative && !command.directory.empty() ? command.directory + "/" + name : name, path);
  if (program.exit_code == exit_code::not_found) return name + ": command not found";
  if (program.exit_code != 0) return name + ": not executable";
  return {};
}

Ended start_once(const CronCommand& command, const CommandHost& host, Run& run, int retry) {
  Ended ended;
  const auto environment = environment_for(command, run, run.lease(), retry);
  Program program;
  ended.problem = why_not(command, value_of(environment, "PATH"), program);
  if (!ended.problem.empty()) return ended;
  const auto fields = [&](const char* stream) {
    return observe::LogFields{
        {"job", run.job()}, {"fire", std::to_string(run.number())}, {"stream", stream}};
  };
  CapturedPipe out(host.output, fields("stdout"));
  CapturedPipe errors(host.output, fields("stderr"));
  auto child = Child::prepare(host.spawner, {.program = program.path,
                                             .command = command.words,
                                             .grace = grace_if_killed(host.store, command.grace),
                                             .apart = true,
                                             .directory = command.directory,
                                             .out = out.writing(),
                                             .errors = errors.writing()});
  out.close_writing();
  errors.close_writing();
  if (!child) {
    ended.no_answer = child.error().retryable;
    ended.problem = child.error().message;
    return ended;
  }
  Supervisor supervisor(**child, run.lease(), command.grace, [&](const std::string& message) {
    host.log.write(observe::LogLevel::warn, "baton.cron", message, {{"job", run.job()}});
  });
  supervisor.limit({.stop = run.stop(), .timeout = command.timeout, .end_what_is_left = true});
  int exec_error = 0;
  if (auto started = supervisor.start(environment, exec_error); !started) {
    ended.lost = started.error().code == Code::lost;
    ended.problem = started.error().message;
    return ended;
  }
  ended.code = supervisor.wait();
  ended.lost = supervisor.lost();
  ended.stopped = supervisor.stopped() && !ended.lost;
  ended.timed_out = supervisor.timed_out();
  if (supervisor.left_behind()) ended.problem = "it could not be ended, or not all it started";
  return ended;
}

std::string shown(const Ended& ended, const CronCommand& command) {
  if (!ended.problem.empty()) return ended.problem;
  if (ended.lost) return "the lock was lost; the command was ended";
  if (ended.timed_out) {
    return "ended after its timeout of " + policy::print_duration(command.timeout);
  }
  if (ended.code > exit_code::by_signal) {
    return fmt::format("{}signal {}", ended.stopped ? "stopped, " : "",
                       ended.code - exit_code::by_signal);
  }
  return fmt::format("{}exit {}", ended.stopped ? "stopped, " : "", ended.code);
}

// False if the run is to end.
bool pause(Millis time, const Run& run) {
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  return !signal.wait_for(lock, run.stop(), time, [] { return false; }) &&
         !run.stop().stop_requested();
}

}  // namespace

std::vector<std::string> command_environment(const CronCommand& command) {
  std::vector<std::string> environment;
  environment.emplace_back(kDefaultPath);
  const auto pass = [&](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return;
    const std::string variable = name + "=" + value;
    set(environment, name,
        name == "BATON_STORE" ? store_variable(variable).substr(name.size() + 1) : value);
  };
  for (const char* name : kPassedAlways) pass(name);
  for (const std::string& name : command.pass_environment) pass(name);
  for (const auto& [name, value] : command.environment) set(environment, name, value);
  return environment;
}

void run_command(const CronCommand& command, OnCrash on_crash, const CommandHost& host, Run& run) {
  for (int retry = 0;; ++retry) {
    const Ended ended = start_once(command, host, run, retry);
    const bool well = ended.problem.empty() && !ended.lost && !ended.timed_out;
    if (well && ended.code == exit_code::ok) return;
    // EX_TEMPFAIL: the command says that this was not the moment. The next fire is.
    if (well && ended.code == exit_code::busy) return run.set_detail("left out: exit 75");
    const std::string what = shown(ended, command);
    const bool stopping = run.stop().stop_requested();
    // It has not done what it was to do, and another node can, with a machine that may be in better
    // shape. If the lock is lost for good, this says nothing; if somebody has broken it, the fire
    // must not count as done.
    const bool to_others = (stopping || ended.no_answer) && on_crash == OnCrash::rerun;
    if (to_others) run.leave();
    if (to_others || stopping || retry >= command.retries) throw std::runtime_error(what);
    const Millis wait = command.retry_after * (1 << std::min(retry, kMostDoublings));
    host.log.write(observe::LogLevel::warn, "baton.cron", "FIRE_RETRIED",
                   {{"job", run.job()},
                    {"fire", std::to_string(run.number())},
                    {"detail", what},
                    {"retry", std::to_string(retry + 1)},
                    {"in", policy::print_duration(wait)}});
    if (!pause(wait, run)) {
      if (on_crash == OnCrash::rerun) run.leave();
      throw std::runtime_error(what);
    }
  }
}

}  // namespace baton::cli
