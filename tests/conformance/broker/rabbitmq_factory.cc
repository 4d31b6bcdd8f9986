#include <csignal>

#include "harness.h"
#include "support/rabbit_server.h"

namespace baton::test {
namespace {

class RabbitmqFactory final : public BrokerFactory {
 public:
  std::string url() override { return server_.url(); }

  void restart() override {
    server_.stop();
    server_.start();
  }

  std::shared_ptr<void> block() override {
    const pid_t pid = server_.pid();
    if (!stop_still(pid)) throw std::runtime_error("RabbitMQ does not stop");
    return {this, [pid](void*) { ::kill(pid, SIGCONT); }};
  }

  std::string impatient_url() override { return server_.url("heartbeat=1s"); }

  std::string refused_url() override {
    return std::string("rabbitmq://guest:") + kWrongPassword +
           "@127.0.0.1:" + std::to_string(server_.port());
  }

  std::shared_ptr<void> alarm() override {
    server_.set_memory_alarm(true);
    return {this, [this](void*) { server_.set_memory_alarm(false); }};
  }

 private:
  RabbitServer server_;
};

}  // namespace

std::unique_ptr<BrokerFactory> make_broker_factory() { return std::make_unique<RabbitmqFactory>(); }

}  // namespace baton::test
