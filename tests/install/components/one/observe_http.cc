#include <baton/metrics_server.h>

int main() {
  const auto metrics = std::make_shared<baton::observe::Metrics>();
  metrics->counter("reports_total", "Reports written").add();
  const auto server = baton::observe::MetricsServer::start("127.0.0.1:0", metrics);
  return server && (*server)->port() != 0 ? 0 : 1;
}
