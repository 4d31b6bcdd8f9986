#include <baton/job_metrics.h>

int main() {
  const auto metrics = std::make_shared<baton::observe::Metrics>();
  const baton::observe::JobMetrics jobs(metrics, {.jobs = {"nightly"}});
  return metrics->text().find("nightly") != std::string::npos ? 0 : 1;
}
