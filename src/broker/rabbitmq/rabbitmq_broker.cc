#include "broker/rabbitmq/rabbitmq_broker.h"

#include "broker/rabbitmq/examine.h"
#include "broker/rabbitmq/publisher.h"
#include "broker/rabbitmq/settings.h"
#include "broker/rabbitmq/subscription.h"
#include "broker/rabbitmq/topology_admin.h"

namespace baton::broker {
namespace {

using namespace rabbitmq;

// Every call has a connection of its own, and so does every publisher and subscription.
class RabbitmqBroker final : public Broker {
 public:
  explicit RabbitmqBroker(Settings settings) : settings_(std::move(settings)) {}

  Result<void> declare(const Topology& topology, Deadline by) override {
    if (auto checked = check_topology(topology); !checked) return checked;
    auto admin = TopologyAdmin::open(settings_, by);
    if (!admin) return admin.error();
    return (*admin)->make(topology);
  }

  Result<std::vector<BrokerFinding>> check(const Topology& topology, Deadline by) override {
    if (auto checked = check_topology(topology); !checked) return checked.error();
    auto admin = TopologyAdmin::open(settings_, by);
    if (!admin) return admin.error();
    auto findings = (*admin)->compare(topology);
    if (!findings) return findings.error();
    Facts facts{.product = (*admin)->connection().product(),
                .version = (*admin)->connection().version()};
    auto queues = (*admin)->count(topology);
    if (!queues) return queues.error();
    facts.queues = std::move(*queues);
    auto alarm = (*admin)->alarm();
    if (!alarm) return alarm.error();
    facts.alarm = std::move(*alarm);
    if (!topology.bindings.empty()) {
      findings->push_back(
          {BrokerFinding::Severity::note, "bindings-not-visible", settings_.location,
           "AMQP does not tell which bindings there are; 'baton topology apply' makes "
           "those that are missing"});
    }
    for (auto& finding : examine(settings_, topology, facts)) {
      findings->push_back(std::move(finding));
    }
    return findings;
  }

  Result<std::vector<QueueInfo>> queues(const Topology& topology, Deadline by) override {
    auto admin = TopologyAdmin::open(settings_, by);
    if (!admin) return admin.error();
    return (*admin)->count(topology);
  }

  Result<std::unique_ptr<Publisher>> publisher() override {
    return std::unique_ptr<Publisher>(std::make_unique<RabbitmqPublisher>(settings_));
  }

  using Broker::subscribe;
  Result<std::unique_ptr<Subscription>> subscribe(std::vector<std::string> queues,
                                                  const SubscribeOptions& options,
                                                  Deadline by) override {
    return RabbitmqSubscription::open(settings_, std::move(queues), options, by);
  }

  [[nodiscard]] std::string describe() const override { return settings_.location; }

 private:
  const Settings settings_;
};

}  // namespace

Result<std::shared_ptr<Broker>> make_rabbitmq_broker(std::string_view url) {
  auto settings = parse_settings(url);
  if (!settings) return settings.error();
  return std::shared_ptr<Broker>(std::make_shared<RabbitmqBroker>(std::move(*settings)));
}

}  // namespace baton::broker
