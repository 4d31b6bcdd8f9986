#include "baton/scheduler.h"
#include "baton/job_config.h"
#include "baton/locks.h"

using namespace std::chrono_literals;

int tell(const baton::Error& error);
void poll_orders(baton::Run& run);
void report(baton::WallTime due, const std::stop_token& stop);

int jobs_in_code() {
#include "docs/scheduler.md.1.inc"
  return 0;
}

void jobs_by_file(baton::Scheduler& jobs, const std::string& yaml,
                  const std::vector<std::string>& names, const baton::Handler& poll) {
#include "docs/scheduler.md.2.inc"
}
