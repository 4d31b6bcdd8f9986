#include "baton/job_control.h"

#include <algorithm>
#include <unordered_map>

#include "core/bad_request.h"
#include "node/wall_time.h"
#include "policy/suggest.h"
#include "schedule/job_lists.h"
#include "schedule/job_note.h"
#include "schedule/job_queries.h"

namespace baton {
namespace {

using node::from_millis;
using schedule::ControlNote;
using schedule::JobNote;

constexpr std::string_view kGone = "gone";
constexpr Millis kWriteTtl{10'000};
constexpr Millis kWriteWait{10'000};

JobRun run_of(const schedule::PastRun& past) {
  return {.fire = past.fire,
          .due = from_millis(past.due),
          .started = from_millis(past.started),
          .ended = from_millis(past.ended),
          .duration = Millis(past.took),
          .node = past.node,
          .result = past.result,
          .detail = past.detail,
          .attempt = past.attempt};
}

JobRun run_of(const JobNote& note) {
  return {.fire = note.fire,
          .due = from_millis(note.due),
          .started = from_millis(note.began),
          .node = note.node};
}

int pending(std::int64_t asked, std::int64_t done) {
  return static_cast<int>(std::clamp<std::int64_t>(asked - done, 0, 1'000'000));
}

std::optional<JobStatus> status_of(const LockInfo& info, const ControlNote& control,
                                   const schedule::JobNodes& nodes) {
  auto name = schedule::job_of_key(info.key);
  const auto note = schedule::from_note(info.note);
  if (!name || !note) return std::nullopt;
  JobStatus status;
  status.name = std::move(*name);
  status.schedule = note->schedule;
  status.paused = control.paused;
  status.paused_by = control.paused_by;
  status.run_requests = pending(control.runs, note->runs);
  status.skip_requests = pending(control.skips, note->skips);
  status.failures = note->failures;
  if (note->last) status.last = run_of(*note->last);
  for (const auto& run : note->past) status.past.push_back(run_of(run));
  const auto holder = std::find_if(info.holders.begin(), info.holders.end(),
                                   [](const HolderInfo& held) { return !held.released; });
  const bool held = holder != info.holders.end();
  if (held) {
    status.token = holder->token;
    status.expires_in = holder->expires_in;
  }
  if (note->started) {
    status.running = run_of(*note);
    status.running->result = held ? std::string_view() : schedule::kCrashed;
    status.attempt = note->attempt;
    status.state = held ? "running" : schedule::kCrashed;
  } else {
    status.state = control.paused ? "paused" : "waiting";
    if (note->next != 0 && !control.paused) status.next = from_millis(note->next);
  }
  if (const auto having = nodes.find(status.name); having != nodes.end()) {
    status.nodes = having->second;
  } else if (!held) {
    status.state = kGone;
    status.next.reset();
  }
  return status;
}

Error no_such_job(const std::string& job, const std::vector<JobStatus>& known) {
  std::vector<std::string_view> names;
  for (const auto& status : known) names.emplace_back(status.name);
  const std::string near = policy::nearest(job, names);
  std::string message = "no scheduler has registered a job '" + job + "'";
  if (!near.empty()) message += "; did you mean '" + near + "'?";
  if (near.empty()) message += "; `baton job list` shows those that there are";
  return bad_request(std::move(message));
}

Error still_on(const std::string& job, const std::vector<std::string>& nodes) {
  const std::size_t more = nodes.size() - 1;
  return {.code = Code::busy,
          .message = "job '" + job + "' is on the live node " + nodes.front() +
                     (more > 0 ? " and " + std::to_string(more) + " more" : "") +
                     "; remove it from the configuration of all nodes first"};
}

void change(ControlNote& control, JobCommand command, const std::string& who) {
  ++control.version;
  switch (command) {
    case JobCommand::pause:
      control.paused = true;
      control.paused_by = who;
      return;
    case JobCommand::resume:
      control.paused = false;
      control.paused_by.clear();
      return;
    case JobCommand::run_now: ++control.runs; return;
    case JobCommand::skip_next: ++control.skips; return;
  }
}

}  // namespace

Result<std::vector<JobStatus>> list_jobs(LockClient& locks, const std::string& region) {
  auto controls = schedule::find_subject(locks, kJobControlSubject, region);
  if (!controls) return controls.error();
  auto jobs = schedule::find_subject(locks, kJobSubject, region);
  if (!jobs) return jobs.error();
  const auto nodes = schedule::find_job_nodes(locks, region);
  if (!nodes) return nodes.error();
  std::unordered_map<std::string, ControlNote> commands;
  for (const LockInfo& info : *controls) {
    if (auto job = schedule::job_of_key(info.key)) {
      commands.emplace(std::move(*job), schedule::control_from_note(info.note));
    }
  }
  std::vector<JobStatus> list;
  for (const LockInfo& info : *jobs) {
    const auto name = schedule::job_of_key(info.key);
    if (!name) continue;
    if (auto status = status_of(info, commands[*name], *nodes)) list.push_back(std::move(*status));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return std::pair(a.state == kGone, std::string_view(a.name)) <
           std::pair(b.state == kGone, std::string_view(b.name));
  });
  return list;
}

Result<JobStatus> show_job(LockClient& locks, const std::string& job, const std::string& region) {
  auto info = locks.get(schedule::job_name(job, region));
  if (!info) return info.error();
  auto control = locks.get(schedule::control_name(job, region));
  if (!control) return control.error();
  const auto nodes = schedule::find_job_nodes(locks, region);
  if (!nodes) return nodes.error();
  info->key = key_of(schedule::job_name(job, region));
  if (auto status = status_of(*info, schedule::control_from_note(control->note), *nodes)) {
    return *status;
  }
  auto known = list_jobs(locks, region);
  if (!known) return known.error();
  return no_such_job(job, *known);
}

Result<void> command_job(LockClient& locks, const std::string& job, JobCommand command,
                         const std::string& region) {
  auto status = show_job(locks, job, region);
  if (!status) return status.error();
  auto lease =
      locks.acquire(schedule::control_name(job, region), {.ttl = kWriteTtl, .wait = kWriteWait});
  if (!lease) return lease.error();
  ControlNote control = schedule::control_from_note(lease->note());
  change(control, command, locks.owner());
  return lease->release({.note = schedule::to_note(control)});
}

Result<void> forget_job(LockClient& locks, const std::string& job, const std::string& region) {
  auto status = show_job(locks, job, region);
  if (!status) return status.error();
  if (!status->nodes.empty()) return still_on(job, status->nodes);
  auto lease =
      locks.acquire(schedule::job_name(job, region), {.ttl = kWriteTtl, .wait = kWriteWait});
  if (!lease) return lease.error();
  // A node writes its list before it looks at its jobs: one that has come meanwhile is seen here,
  // or finds the job forgotten.
  auto nodes = schedule::find_job_nodes(locks, region);
  if (!nodes) return nodes.error();
  if (nodes->contains(job)) return still_on(job, (*nodes)[job]);
  // The commands first: a pause without its job would be there for the next one of that name.
  auto commands =
      locks.acquire(schedule::control_name(job, region), {.ttl = kWriteTtl, .wait = kWriteWait});
  if (!commands) return commands.error();
  const NoteChange nothing{.ordinal = 0, .text = ""};
  if (auto cleared = commands->release({.note = nothing}); !cleared) return cleared;
  return lease->release({.note = nothing});
}

}  // namespace baton
