// baton completion locks, jobs and elections: what can be named, one a line, for the completion
// scripts. A shell asks for it at every press of Tab: it gives up soon and makes no store.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <vector>

#include "baton/job_control.h"
#include "baton/name.h"
#include "cli/commands.h"
#include "cli/open_locks.h"

namespace baton::cli {
namespace {

constexpr Millis kWithin{1'000};
constexpr std::string_view kElections = "leader";

// What a shell takes as it is: no other name gets into a command line by itself.
bool is_plain(const std::string& name) {
  return !name.empty() && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || std::strchr("._/%@+-", c) != nullptr);
         });
}

bool is_there(const std::string& store) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!store.starts_with(kScheme)) return true;
  std::error_code unknown;
  return std::filesystem::exists(store.substr(kScheme.size(), store.find('?') - kScheme.size()),
                                 unknown);
}

Result<std::vector<std::string>> names_of_locks(LockClient& locks, const std::string& region,
                                                bool elections) {
  Query query{.region = region, .max_waiters = 0};
  if (elections) query.subject = kElections;
  auto page = locks.find(query, kWithin);
  if (!page) return page.error();
  std::vector<std::string> names;
  for (const auto& info : page->items) {
    const auto name = parse_key(info.key);
    if (!name) continue;
    std::string path = print_path(*name);
    if (elections) path.erase(0, std::min(path.size(), kElections.size() + 1));
    names.push_back(std::move(path));
  }
  return names;
}

Result<std::vector<std::string>> names_of(LockClient& locks, const std::string& region,
                                          const std::string& kind) {
  if (kind != "jobs") return names_of_locks(locks, region, kind == "elections");
  auto jobs = list_jobs(locks, region);
  if (!jobs) return jobs.error();
  std::vector<std::string> names;
  for (const auto& job : *jobs) names.push_back(job.name);
  return names;
}

}  // namespace

Result<std::vector<std::string>> known_names(Context& context, const std::string& kind) {
  context.out.be_quiet();
  auto settings = resolve_settings(context);
  if (!settings) return settings.error();
  if (!is_there(settings->store)) return std::vector<std::string>();
  auto locks = open_locks(context, *settings, kWithin);
  if (!locks) return locks.error();
  const std::string region =
      settings->region.empty() ? std::string(kDefaultRegion) : settings->region;
  auto names = names_of(*locks, region, kind);
  if (!names) return names.error();
  std::erase_if(*names, [](const std::string& name) { return !is_plain(name); });
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
  return names;
}

}  // namespace baton::cli
