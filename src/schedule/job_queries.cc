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
  std::vector<LockName> names;
  for (const std::string& job : jobs) names.push_back(job_name(job, region));
  auto found = locks.get_all(names, timeout);
  if (!found) return found.error();
  for (std::size_t i = 0; i < names.size(); ++i) (*found)[i].key = key_of(names[i]);
  return found;
}

}  // namespace baton::schedule
