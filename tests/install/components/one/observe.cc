#include <baton/consumer_metrics.h>
#include <baton/lock_metrics.h>
#include <baton/outbox_metrics.h>

int main() {
  const auto metrics = std::make_shared<baton::observe::Metrics>();
  const baton::observe::LockMetrics locks(metrics);
  const baton::observe::ConsumerMetrics billing(metrics, "billing");
  const baton::observe::OutboxMetrics shop(metrics, "shop");
  const std::string text = metrics->text();
  return text.find("baton_consumer_") != text.npos && text.find("baton_outbox_") != text.npos ? 0
                                                                                              : 1;
}
