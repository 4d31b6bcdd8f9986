#include "schedule/job_queries.h"

#include "schedule/job_note.h"

namespace baton::schedule {

Result<std::vector<LockInfo>> find_subject(LockClient& locks, std::string_view subject,
                                           const std::string& region, Millis timeout) {
  std::vector<LockInfo> found;
  Query query;
  query.region = region;
  query.subject = std::string(subject);
  query.idle = true;
  query.limit = 10'000;
  query.max_waiters = 0;
  do {
    auto page = locks.find(query, timeout);
    if (!page) return page.error();
    if (found.empty()) {
      found = std::move(page->items);
    } else {
      for (LockInfo& info : page->items) found.push_back(std::move(info));
    }
    query.after = page->next;
  } while (!query.after.empty());
  return found;
}

Result<std::vector<LockInfo>> get_jobs(LockClient& locks, const std::vector<std::string>& jobs,
                                       const std::string& region, Millis timeout) {
  std::vector<LockInfo> found;
  for (const std::string& job : jobs) {
    const LockName name = job_name(job, region);
    auto info = locks.get(name, timeout);
    if (!info) return info.error();
    info->key = key_of(name);
    found.push_back(std::move(*info));
  }
  return found;
}

}  // namespace baton::schedule
