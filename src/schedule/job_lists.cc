#include "schedule/job_lists.h"

#include <algorithm>
#include <optional>

#include "json/json.h"
#include "node/wall_time.h"
#include "schedule/job_queries.h"

namespace baton::schedule {
namespace {

using nlohmann::json;

constexpr std::string_view kJobsPart = "jobs";
constexpr Millis kWriteTtl{10'000};
constexpr Millis kWriteWait{2'000};
constexpr Millis kReadTimeout{2'000};

LockName part_name(const JobListKey& key, std::size_t part) {
  return {.subject = std::string(kNodeSubject),
          .predicate = std::string(kNodePredicate),
          .resources = {key.node, std::string(kJobsPart), std::to_string(key.scheduler),
                        std::to_string(part)},
          .region = key.region};
}

// The node whose list the name is part of, or nothing.
std::optional<std::string> node_of_part(std::string_view key) {
  auto name = parse_key(key);
  if (!name || name->resources.size() != 4 || name->resources[1] != kJobsPart) return std::nullopt;
  return std::move(name->resources[0]);
}

std::int64_t seconds_of(WallTime time) { return node::to_millis(time) / 1000; }

// As many names to a note as it has room for.
std::vector<std::string> parts_of(const std::vector<std::string>& jobs) {
  std::vector<std::string> parts;
  std::string part;
  for (const std::string& job : jobs) {
    const std::string name = json(job).dump(-1, ' ', false, json::error_handler_t::replace);
    if (!part.empty() && part.size() + name.size() + 2 > kMaxNoteBytes) {
      parts.push_back(part + "]");
      part.clear();
    }
    part += (part.empty() ? "[" : ",") + name;
  }
  if (!part.empty()) parts.push_back(part + "]");
  return parts;
}

Result<void> write_part(LockClient& locks, const LockName& name, std::int64_t ordinal,
                        std::string text) {
  auto lease = locks.acquire(name, {.ttl = kWriteTtl, .wait = kWriteWait});
  if (!lease) return lease.error();
  return lease->release({.note = {.ordinal = ordinal, .text = std::move(text)}});
}

// Those from `part` on, of a longer list.
Result<void> clear_from(LockClient& locks, const JobListKey& key, std::size_t part) {
  while (true) {
    const LockName name = part_name(key, part++);
    auto info = locks.get(name, kReadTimeout);
    if (!info) return info.error();
    if (info->note.text.empty()) return {};
    if (auto cleared = write_part(locks, name, 0, ""); !cleared) return cleared;
  }
}

}  // namespace

Result<void> write_job_list(LockClient& locks, const JobListKey& key, WallTime node_started,
                            std::vector<std::string> jobs) {
  std::sort(jobs.begin(), jobs.end());
  const auto parts = parts_of(jobs);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto written = write_part(locks, part_name(key, i), seconds_of(node_started), parts[i]);
    if (!written) return written;
  }
  return clear_from(locks, key, parts.size());
}

void clear_job_list(LockClient& locks, const JobListKey& key) { (void)clear_from(locks, key, 0); }

Result<JobNodes> find_job_nodes(LockClient& locks, const std::string& region) {
  auto live = live_nodes(locks, region);
  if (!live) return live.error();
  auto lists = find_subject(locks, kNodeSubject, region);
  if (!lists) return lists.error();
  std::unordered_map<std::string, std::int64_t> started;
  for (const NodeInfo& node : *live) started.emplace(node.id, seconds_of(node.started));
  JobNodes found;
  for (const LockInfo& info : *lists) {
    const auto id = node_of_part(info.key);
    const auto node = id ? started.find(*id) : started.end();
    if (node == started.end() || node->second != info.note.ordinal) continue;
    const json jobs = parse_json(info.note.text);
    if (!jobs.is_array()) continue;
    for (const json& job : jobs) {
      if (job.is_string()) found[job.get<std::string>()].push_back(*id);
    }
  }
  for (auto& [job, nodes] : found) std::sort(nodes.begin(), nodes.end());
  return found;
}

}  // namespace baton::schedule
