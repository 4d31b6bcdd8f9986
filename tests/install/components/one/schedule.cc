#include <baton/job_config.h>
#include <baton/job_control.h>
#include <baton/scheduler.h>

int main() {
  const bool cron = bool(baton::Schedule::cron("0 3 * * *", "Europe/Berlin"));
  return cron && baton::JobConfig::parse("scheduler: {}\n") ? 0 : 1;
}
