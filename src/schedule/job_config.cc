#include "baton/job_config.h"

#include <algorithm>

#include "policy/suggest.h"
#include "policy/yaml.h"
#include "schedule/job_section.h"

namespace baton {
namespace {

using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

Result<JobSection> read_section(const YamlNode& node) {
  JobSection section;
  section.line = node.key_line;
  if (node.kind == Kind::none) return section;
  if (node.kind != Kind::map) return schedule::expected(node, "a map");
  for (const YamlNode& item : node.items) {
    if (auto read = schedule::read_key(item, section); !read) return read.error();
  }
  if (auto ok = schedule::check_section(section); !ok) return ok.error();
  return section;
}

std::size_t words_in(std::string_view name) {
  return static_cast<std::size_t>(std::count(name.begin(), name.end(), '-')) + 1;
}

bool speaks_for(std::string_view section, std::string_view job) {
  return ("-" + std::string(job) + "-").find("-" + std::string(section) + "-") != std::string::npos;
}

}  // namespace

Result<JobConfig> JobConfig::parse(std::string_view yaml) {
  auto root = policy::read_yaml(yaml);
  if (!root) return root.error();
  JobConfig config;
  if (root->kind == Kind::none) return config;
  if (root->kind != Kind::map) return policy::yaml_error(root->line, "expected the key scheduler");
  for (const YamlNode& top : root->items) {
    if (top.key != "scheduler") continue;
    if (top.kind == Kind::none) continue;
    if (top.kind != Kind::map) return schedule::expected(top, "a map of jobs");
    for (const YamlNode& node : top.items) {
      auto section = read_section(node);
      if (!section) return section.error();
      config.sections_.emplace(node.key, std::move(*section));
    }
  }
  return config;
}

Result<ConfiguredJob> JobConfig::configure(std::string_view job, JobOptions defaults) const {
  std::vector<const std::pair<const std::string, JobSection>*> found;
  for (const auto& section : sections_) {
    if (speaks_for(section.first, job)) found.push_back(&section);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto* a, const auto* b) {
    return words_in(a->first) < words_in(b->first);
  });
  ConfiguredJob configured{.schedule = std::nullopt, .options = std::move(defaults)};
  std::optional<std::string> zone;
  const JobSection* when = nullptr;
  for (const auto* section : found) {
    schedule::apply(section->second, configured.options);
    if (section->second.time_zone) zone = section->second.time_zone;
    if (section->second.fixed_delay || section->second.fixed_rate || section->second.cron) {
      when = &section->second;
    }
  }
  if (when == nullptr) return configured;
  auto schedule = schedule::schedule_of(*when, zone.value_or("UTC"));
  if (!schedule) return schedule.error();
  configured.schedule = std::move(*schedule);
  return configured;
}

Result<void> JobConfig::check(std::span<const std::string> jobs) const {
  const std::vector<std::string_view> names(jobs.begin(), jobs.end());
  for (const auto& [name, section] : sections_) {
    if (std::any_of(jobs.begin(), jobs.end(), [&section_name = name](const std::string& job) {
          return speaks_for(section_name, job);
        })) {
      continue;
    }
    return policy::yaml_error(section.line, "section '" + name + "' speaks for no job; " +
                                                policy::unknown_word("job", name, names));
  }
  return {};
}

}  // namespace baton
