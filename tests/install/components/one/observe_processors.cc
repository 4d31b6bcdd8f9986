#include <baton/processor_metrics.h>

int main() {
  const auto metrics = std::make_shared<baton::observe::Metrics>();
  const baton::observe::ProcessorMetrics views(metrics, "");
  views.count_error("totals");
  return metrics->text().find("totals") != std::string::npos ? 0 : 1;
}
