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
    return {nullptr, [pid](void*) { ::kill(pid, SIGCONT); }};
  }

 private:
  RabbitServer server_;
};

}  // namespace

std::unique_ptr<BrokerFactory> make_broker_factory() { return std::make_unique<RabbitmqFactory>(); }

}  // namespace baton::test
