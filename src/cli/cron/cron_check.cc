#include "cli/cron/cron_check.h"

#include <filesystem>

#include <fmt/format.h>

#include "cli/child.h"
#include "cli/commands.h"
#include "cli/cron/command_job.h"
#include "cli/json_writer.h"
#include "node/wall_time.h"

namespace baton::cli {
namespace {

constexpr int kShownFires = 3;

std::vector<WallTime> next_fires(const CronJob& job, WallTime now) {
  std::vector<WallTime> fires;
  if (!job.options.enabled || job.schedule.kind() == Schedule::Kind::fixed_delay) return fires;
  for (int i = 0; i < kShownFires; ++i) {
    now = job.schedule.next(now, job.name);
    fires.push_back(now);
  }
  return fires;
}

// It may be there on the other machines.
std::string missing(const CronJob& job) {
  std::string path;
  for (const std::string& variable : command_environment(job.command)) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  const std::string& name = job.command.words.front();
  const bool relative = name.find('/') != std::string::npos && !name.starts_with('/');
  const Program program = find_program(
      relative && !job.command.directory.empty() ? job.command.directory + "/" + name : name, path);
  if (program.exit_code == 0) return {};
  return name + (program.exit_code == exit_code::not_found ? ": command not found on this machine"
                                                           : ": not executable on this machine");
}

std::vector<std::string> warnings_of(const CronJob& job, const std::string& node) {
  // The command of a job that does not run on this machine need not be on it.
  if (auto why = why_not_here(job, node); !why.empty()) return {std::move(why)};
  std::vector<std::string> warnings;
  const std::string& directory = job.command.directory;
  std::error_code unknown;
  if (!directory.empty() && !std::filesystem::is_directory(directory, unknown)) {
    warnings.push_back(directory + ": no such directory on this machine");
  }
  if (auto lacks = missing(job); !lacks.empty()) warnings.push_back(std::move(lacks));
  return warnings;
}

std::string shown_command(const CronCommand& command) {
  if (command.words.size() == 3 && command.words[0] == "/bin/sh") return command.words[2];
  std::string text;
  for (const std::string& word : command.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

void show_cron_file(const Output& out, const std::vector<CronJob>& jobs, const std::string& node,
                    WallTime now) {
  JsonWriter json;
  json.begin_object().key("jobs").begin_array();
  std::vector<std::vector<std::string>> rows;
  for (const CronJob& job : jobs) {
    const auto fires = next_fires(job, now);
    const auto lacks = warnings_of(job, node);
    json.begin_object().field("name", job.name).field("line", job.line);
    json.field("schedule", job.schedule.text()).field("enabled", job.options.enabled);
    json.key("next").begin_array();
    std::string next;
    for (const WallTime fire : fires) {
      json.value(node::print_time(fire));
      next += (next.empty() ? "" : ", ") + node::print_time(fire).substr(0, 19) + "Z";
    }
    json.end_array();
    if (!lacks.empty()) json.field("warning", fmt::format("{}", fmt::join(lacks, "; ")));
    json.end_object();
    if (next.empty()) next = job.options.enabled ? "at once, then after each end" : "disabled";
    rows.push_back({job.name, job.schedule.text(), next, shown_command(job.command)});
    for (const std::string& lack : lacks) out.warning(job.name + ": " + lack);
  }
  json.end_array();
  if (jobs.empty()) {
    json.field("warning", "the file has no jobs");
    out.warning("the file has no jobs");
  }
  json.end_object();
  if (out.json()) return out.line(json.text());
  out.table({"JOB", "SCHEDULE", "NEXT", "COMMAND"}, rows);
}

}  // namespace baton::cli
