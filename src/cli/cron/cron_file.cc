#include "cli/cron/cron_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "cli/cron/command_keys.h"
#include "cli/file.h"
#include "policy/suggest.h"
#include "policy/yaml.h"
#include "schedule/job_note.h"
#include "schedule/job_section.h"

namespace baton::cli {
namespace {

using policy::yaml_error;
using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

constexpr std::size_t kDefaultKeptRuns = 10;
constexpr Millis kLeastPeriod{100};

// First those that only a job has.
constexpr std::size_t kOfAJobAlone = 5;
constexpr std::array<std::string_view, 26> kKeys = {
    "command",      "every",        "after-end", "cron",        "phase",       "time-zone",
    "ttl",          "at-least-for", "try-for",   "jitter",      "misfire",     "on-crash",
    "max-attempts", "nodes",        "enabled",   "backoff",     "max-backoff", "report-after",
    "timeout",      "grace",        "retries",   "retry-after", "environment", "pass-environment",
    "directory",    "keep-runs"};
constexpr std::array<std::string_view, 2> kTopKeys = {"defaults", "jobs"};

// A job as far as it has been read.
struct Draft {
  JobSection section;
  CronCommand command;
  std::size_t keep_runs = kDefaultKeptRuns;
};

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Requires a unit: elsewhere a bare number is milliseconds, which nobody expects in a cron file.
Result<void> check_unit(const YamlNode& item) {
  if (item.kind != Kind::text || item.text.empty() || item.text == "0") return {};
  if (!std::all_of(item.text.begin(), item.text.end(),
                   [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return {};
  }
  return yaml_error(item.line, item.key + " needs a unit: " + item.text + "s, " + item.text + "m…");
}

Result<void> read_duration_into(const YamlNode& item, bool zero_too, std::optional<Millis>& into) {
  auto time = schedule::read_duration(item, zero_too);
  if (!time) return time.error();
  into = *time;
  return {};
}

Result<void> read_scheduling(const YamlNode& item, Draft& draft) {
  if (!is_one_of(item.key, {"cron", "time-zone", "misfire", "on-crash", "max-attempts", "nodes",
                            "enabled"})) {
    if (auto ok = check_unit(item); !ok) return ok;
  }
  JobSection& section = draft.section;
  if (item.key == "every") return read_duration_into(item, false, section.fixed_rate);
  if (item.key == "after-end") return read_duration_into(item, false, section.fixed_delay);
  if (item.key == "at-least-for") return read_duration_into(item, true, section.at_least_for);
  if (item.key == "ttl") return schedule::read_lock_ttl(item, section);
  return schedule::read_key(item, section);
}

Result<void> read_item(const YamlNode& item, bool of_a_job, Draft& draft) {
  const auto known = std::find(kKeys.begin(), kKeys.end(), item.key);
  if (known == kKeys.end()) {
    return yaml_error(item.key_line, policy::unknown_word("key", item.key, kKeys));
  }
  if (!of_a_job && known < kKeys.begin() + kOfAJobAlone) {
    return yaml_error(item.key_line, item.key + " is of a job, not of defaults");
  }
  if (item.key == "keep-runs") {
    auto number = read_number(item, 0, static_cast<int>(kMaxKeptRuns));
    if (!number) return number.error();
    draft.keep_runs = static_cast<std::size_t>(*number);
    return {};
  }
  if (is_command_key(item.key)) {
    if (is_one_of(item.key, {"timeout", "grace", "retry-after"})) {
      if (auto ok = check_unit(item); !ok) return ok;
    }
    return read_command_key(item, draft.command);
  }
  return read_scheduling(item, draft);
}

// Checks that need the whole job.
Result<void> check_job(const YamlNode& node, const Draft& draft) {
  if (auto ok = validate(schedule::job_name(node.key, std::string(kDefaultRegion))); !ok) {
    return yaml_error(node.key_line, ok.error().message);
  }
  const JobSection& section = draft.section;
  const int ways =
      (section.fixed_delay ? 1 : 0) + (section.fixed_rate ? 1 : 0) + (section.cron ? 1 : 0);
  if (ways != 1) {
    return yaml_error(node.key_line, "job '" + node.key +
                                         "' needs one of every, after-end and cron" +
                                         (ways > 1 ? ", not several" : ""));
  }
  const Millis period = section.fixed_rate.value_or(section.fixed_delay.value_or(kLeastPeriod));
  if (period < kLeastPeriod) {
    return yaml_error(node.key_line,
                      "job '" + node.key + "' would run more often than every 100ms");
  }
  if (section.fixed_rate && section.jitter.value_or(Millis(0)) >= *section.fixed_rate) {
    return yaml_error(node.key_line,
                      "the jitter of job '" + node.key + "' is not below its period");
  }
  if (draft.command.words.empty()) {
    return yaml_error(node.key_line, "job '" + node.key + "' has no command");
  }
  return check_command(node, draft.command);
}

std::string source_of(const YamlNode& node) {
  std::string text = node.key + "\x1f" + std::to_string(static_cast<int>(node.kind)) + node.text;
  for (const YamlNode& item : node.items) text += "\x1e" + source_of(item);
  return text + "\x1d";
}

Result<CronJob> read_job(const YamlNode& node, const Draft& defaults) {
  Draft draft = defaults;
  draft.section.line = node.key_line;
  if (node.kind != Kind::map) return schedule::expected(node, "a map");
  for (const YamlNode& item : node.items) {
    if (auto read = read_item(item, true, draft); !read) return read.error();
  }
  if (auto ok = check_job(node, draft); !ok) return ok.error();
  auto when = schedule::schedule_of(draft.section, draft.section.time_zone.value_or("UTC"));
  if (!when) return when.error();
  JobOptions options{.keep_runs = draft.keep_runs};
  schedule::apply(draft.section, options);
  if (options.report_after == Millis(0) && draft.command.timeout > Millis(0)) {
    options.report_after = draft.command.timeout + draft.command.grace;
  }
  return CronJob{.name = node.key,
                 .line = node.key_line,
                 .schedule = std::move(*when),
                 .options = std::move(options),
                 .command = std::move(draft.command),
                 .source = source_of(node)};
}

Result<Draft> read_defaults(const YamlNode& node) {
  Draft draft;
  if (node.kind == Kind::none) return draft;
  if (node.kind != Kind::map) return schedule::expected(node, "a map");
  draft.section.line = node.key_line;
  for (const YamlNode& item : node.items) {
    if (auto read = read_item(item, false, draft); !read) return read.error();
  }
  if (auto ok = schedule::check_section(draft.section); !ok) return ok.error();
  return draft;
}

// Explains two errors of YAML that are hard to guess: `cron: * * * * *` is read as an alias, and a
// tab is not taken as indentation.
Error with_hint(Error error, std::string_view yaml) {
  std::size_t line = 0;
  if (std::sscanf(error.message.c_str(), "line %zu:", &line) != 1) return error;
  for (; line > 1 && !yaml.empty(); --line) {
    yaml.remove_prefix(std::min(yaml.find('\n'), yaml.size() - 1) + 1);
  }
  const std::string_view text = yaml.substr(0, yaml.find('\n'));
  if (text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos) {
    error.message += "; indent with spaces, not with tabs";
  }
  const auto key = text.find("cron:");
  if (key == std::string_view::npos) return error;
  const auto value = text.find_first_not_of(' ', key + 5);
  if (value != std::string_view::npos && (text[value] == '*' || text[value] == '@')) {
    error.message += "; put the expression in quotes: cron: \"" +
                     std::string(text.substr(value, text.find_last_not_of(" \r") + 1 - value)) +
                     "\"";
  }
  return error;
}

}  // namespace

std::string why_not_here(const CronJob& job, const std::string& node) {
  const auto& nodes = job.options.nodes;
  if (nodes.empty() || std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return {};
  std::string list;
  for (const std::string& one : nodes) list += (list.empty() ? "" : ", ") + one;
  if (node.empty()) {
    return "not on this machine, which has no name (nodes: " + list + "); say it by --node";
  }
  return "not on this machine (node " + node + "; nodes: " + list + ")";
}

Result<std::vector<CronJob>> parse_cron_file(std::string_view yaml) {
  auto root = policy::read_yaml(yaml);
  if (!root) return with_hint(root.error(), yaml);
  if (root->kind != Kind::map) return yaml_error(std::max(root->line, 1), "expected the key jobs");
  const YamlNode* jobs = nullptr;
  Draft defaults;
  std::string common;
  for (const YamlNode& top : root->items) {
    if (top.key == "jobs") {
      jobs = &top;
    } else if (top.key == "defaults") {
      auto read = read_defaults(top);
      if (!read) return read.error();
      defaults = std::move(*read);
      common = source_of(top);
    } else {
      return yaml_error(top.key_line, policy::unknown_word("key", top.key, kTopKeys));
    }
  }
  std::vector<CronJob> read;
  if (jobs == nullptr) return yaml_error(root->line, "expected the key jobs");
  if (jobs->kind == Kind::none) return read;
  if (jobs->kind != Kind::map) return schedule::expected(*jobs, "a map of jobs");
  if (jobs->items.size() > kMaxCronJobs) {
    return yaml_error(jobs->line, "there are " + std::to_string(jobs->items.size()) +
                                      " jobs; at most " + std::to_string(kMaxCronJobs) +
                                      " may be in a file");
  }
  for (const YamlNode& node : jobs->items) {
    auto job = read_job(node, defaults);
    if (!job) return job.error();
    job->source += common;
    read.push_back(std::move(*job));
  }
  return read;
}

Result<std::vector<CronJob>> load_cron_file(const std::filesystem::path& path) {
  // A link is followed: configuration is often mounted or replaced by one.
  const auto check = [&](const struct stat& found) -> Result<void> {
    const std::string why = S_ISREG(found.st_mode) ? written_by_others(found) : "";
    if (why.empty()) return {};
    const bool own = found.st_uid == geteuid() || found.st_uid == 0;
    return Error{.code = Code::bad_request,
                 .message = path.string() + ": " + why +
                            ", and who writes it runs commands as this user" +
                            (own ? "; chmod go-w " + path.string() : "")};
  };
  auto text = read_file(path, policy::kMaxYamlBytes, check);
  if (!text) return text.error();
  auto jobs = parse_cron_file(*text);
  if (!jobs) {
    Error error = jobs.error();
    error.message = path.string() + ": " + error.message;
    return error;
  }
  return jobs;
}

}  // namespace baton::cli
