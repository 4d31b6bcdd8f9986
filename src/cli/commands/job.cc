// baton job: what the scheduled jobs do, and telling them what to do.

#include <algorithm>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "baton/job_control.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json_writer.h"
#include "cli/open_locks.h"
#include "node/wall_time.h"

namespace baton::cli {
namespace {

constexpr Millis kLookEvery{100};

std::string ago(WallTime time) {
  const auto past = std::chrono::floor<Millis>(std::chrono::system_clock::now() - time);
  return past < Millis(0) ? "in " + about(-past) : about(past) + " ago";
}

std::string shown_next(const JobStatus& job) {
  if (job.run_requests > 0) return "now, as asked";
  if (!job.next) return "-";
  const auto left = std::chrono::ceil<Millis>(*job.next - std::chrono::system_clock::now());
  const std::string when = left <= Millis(0) ? "now" : "in " + about(left);
  return job.skip_requests > 0 ? when + ", skipped" : when;
}

std::string shown_state(const JobStatus& job) {
  if (job.running && job.attempt > 1) return fmt::format("{} (attempt {})", job.state, job.attempt);
  if (job.failures > 1) return fmt::format("{} ({} failures)", job.state, job.failures);
  return job.state;
}

std::string shown_nodes(const JobStatus& job) {
  if (job.nodes.empty()) return "none; `baton job forget " + job.name + "` clears what is left";
  std::string all;
  for (const auto& node : job.nodes) all += (all.empty() ? "" : ", ") + node;
  return all;
}

void write_run(JsonWriter& json, const JobRun& run, bool ended) {
  json.begin_object().field("fire", run.fire).field("node", run.node);
  json.field("due", node::print_time(run.due)).field("started", node::print_time(run.started));
  if (ended) {
    json.field("ended", node::print_time(run.ended)).field("duration_ms", run.duration.count());
    json.field("result", run.result).field("detail", run.detail);
    json.field("attempt", run.attempt);
  }
  json.end_object();
}

void write_json(JsonWriter& json, const JobStatus& job) {
  json.begin_object().field("name", job.name).field("state", job.state);
  json.field("schedule", job.schedule).field("paused", job.paused);
  json.key("nodes").begin_array();
  for (const auto& node : job.nodes) json.value(node);
  json.end_array();
  if (job.paused) json.field("paused_by", job.paused_by);
  json.field("run_requests", job.run_requests).field("skip_requests", job.skip_requests);
  json.field("failures", job.failures);
  if (job.next) json.field("next", node::print_time(*job.next));
  if (job.last) write_run(json.key("last"), *job.last, true);
  if (job.running) {
    json.field("attempt", job.attempt).field("token", job.token);
    json.field("expires_in_ms", job.expires_in.count());
    write_run(json.key("running"), *job.running, false);
  }
  json.end_object();
}

void print_json(const Output& out, const JobStatus& job) {
  JsonWriter json;
  write_json(json, job);
  out.line(json.text());
}

std::string shown_run(const JobRun& run) {
  return fmt::format("fire {} on {}, due {}, started {}", run.fire, run.node,
                     node::print_time(run.due), node::print_time(run.started));
}

void print_text(const Output& out, const JobStatus& job) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"job", job.name});
  rows.push_back({"state", shown_state(job)});
  if (job.paused) rows.push_back({"paused by", job.paused_by});
  rows.push_back({"nodes", shown_nodes(job)});
  rows.push_back({"schedule", job.schedule});
  if (job.running) {
    rows.push_back({job.state, shown_run(*job.running)});
    if (job.token != 0) {
      rows.push_back({"lease", fmt::format("token {}, expires in {} unless it is renewed",
                                           job.token, about(job.expires_in))});
    }
  }
  if (job.last) {
    rows.push_back({"last run", shown_run(*job.last)});
    rows.push_back({"", fmt::format("{} after {}, {}", job.last->result, about(job.last->duration),
                                    ago(job.last->ended))});
    if (!job.last->detail.empty()) rows.push_back({"", job.last->detail});
  }
  rows.push_back({"next run", shown_next(job)});
  out.table({"", ""}, rows);
}

std::string region_of(const Settings& settings) {
  return settings.region.empty() ? std::string(kDefaultRegion) : settings.region;
}

struct Opened {
  LockClient locks;
  std::string region;
};

Result<Opened> open_store_of(Context& context, std::optional<Millis> wait = {}) {
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  auto locks = open_locks(context, *settings, open_timeout(wait));
  if (!locks) return locks.error();
  return Opened{std::move(*locks), region_of(*settings)};
}

Result<int> wait_for_run(Context& context, Opened& opened, const std::string& job,
                         Instant deadline) {
  while (true) {
    auto status = show_job(opened.locks, job, opened.region);
    if (!status) return status.error();
    if (status->run_requests == 0 && !status->running && status->last) {
      const JobRun& run = *status->last;
      if (context.out.json()) {
        print_json(context.out, *status);
      } else {
        context.out.line(printable(fmt::format("{}: fire {} on {}: {} after {}", job, run.fire,
                                               run.node, run.result, about(run.duration))));
      }
      return run.result == "ok" ? exit_code::ok : exit_code::error;
    }
    if (BootClock::now() >= deadline) {
      return Error{.code = Code::timed_out,
                   .message = job + " was not done in time; it stays asked for"};
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

Result<int> command(Context& context, const JobArguments& arguments, JobCommand what,
                    const std::string& done) {
  std::optional<Millis> wait;
  if (!arguments.wait.empty()) {
    auto parsed = parse_duration_argument("--wait", arguments.wait);
    if (!parsed) return parsed.error();
    if (*parsed > Millis(0)) wait = *parsed;
  }
  const Instant deadline = BootClock::now() + wait.value_or(Millis(0));
  auto opened = open_store_of(context, wait);
  if (!opened) return opened.error();
  if (auto ok = command_job(opened->locks, arguments.name, what, opened->region); !ok) {
    return ok.error();
  }
  if (wait) return wait_for_run(context, *opened, arguments.name, deadline);
  if (!context.out.json()) {
    context.out.line(arguments.name + " " + done);
    return exit_code::ok;
  }
  auto status = show_job(opened->locks, arguments.name, opened->region);
  if (!status) return status.error();
  print_json(context.out, *status);
  return exit_code::ok;
}

}  // namespace

Result<int> job_list(Context& context) {
  auto opened = open_store_of(context);
  if (!opened) return opened.error();
  auto jobs = list_jobs(opened->locks, opened->region);
  if (!jobs) return jobs.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("jobs").begin_array();
    for (const auto& job : *jobs) write_json(json, job);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  if (jobs->empty()) {
    context.out.line("no scheduler has registered a job");
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& job : *jobs) {
    const JobRun* last = job.last ? &*job.last : nullptr;
    rows.push_back({job.name, shown_state(job), job.schedule, last ? ago(last->started) : "never",
                    last ? about(last->duration) : "-", last ? last->result : "-",
                    job.running ? job.running->node : (last ? last->node : "-"), shown_next(job)});
  }
  context.out.table({"JOB", "STATE", "SCHEDULE", "LAST RUN", "TOOK", "RESULT", "NODE", "NEXT RUN"},
                    rows);
  return exit_code::ok;
}

Result<int> job_show(Context& context, const JobArguments& arguments) {
  auto opened = open_store_of(context);
  if (!opened) return opened.error();
  auto job = show_job(opened->locks, arguments.name, opened->region);
  if (!job) return job.error();
  if (context.out.json()) {
    print_json(context.out, *job);
  } else {
    print_text(context.out, *job);
  }
  return exit_code::ok;
}

Result<int> job_history(Context& context, const JobArguments& arguments) {
  auto opened = open_store_of(context);
  if (!opened) return opened.error();
  auto job = show_job(opened->locks, arguments.name, opened->region);
  if (!job) return job.error();
  std::vector<JobRun> runs = std::move(job->past);
  if (job->last) runs.insert(runs.begin(), *job->last);
  runs.resize(std::min(runs.size(), static_cast<std::size_t>(arguments.limit)));
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("name", job->name).key("runs").begin_array();
    for (const JobRun& run : runs) write_run(json, run, true);
    json.end_array().end_object();
    context.out.line(json.text());
    return exit_code::ok;
  }
  if (runs.empty()) {
    context.out.line(arguments.name + " has not run yet");
    return exit_code::ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const JobRun& run : runs) {
    const std::string result =
        run.attempt > 1 ? fmt::format("{} (attempt {})", run.result, run.attempt) : run.result;
    rows.push_back({std::to_string(run.fire), node::print_time(run.due), run.node,
                    node::print_time(run.started), about(run.duration), result, run.detail});
  }
  context.out.table({"FIRE", "DUE", "NODE", "STARTED", "TOOK", "RESULT", "DETAIL"}, rows);
  return exit_code::ok;
}

Result<int> job_pause(Context& context, const JobArguments& arguments) {
  return command(context, arguments, JobCommand::pause, "is paused on every node");
}
Result<int> job_resume(Context& context, const JobArguments& arguments) {
  return command(context, arguments, JobCommand::resume, "goes on");
}
Result<int> job_run(Context& context, const JobArguments& arguments) {
  return command(context, arguments, JobCommand::run_now, "runs as soon as a node sees this");
}
Result<int> job_skip(Context& context, const JobArguments& arguments) {
  return command(context, arguments, JobCommand::skip_next, "leaves out its next run");
}

Result<int> job_forget(Context& context, const JobArguments& arguments) {
  auto opened = open_store_of(context);
  if (!opened) return opened.error();
  if (auto ok = forget_job(opened->locks, arguments.name, opened->region); !ok) return ok.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("name", arguments.name).field("forgotten", true).end_object();
    context.out.line(json.text());
  } else {
    context.out.line(arguments.name + " is forgotten");
  }
  return exit_code::ok;
}

}  // namespace baton::cli
