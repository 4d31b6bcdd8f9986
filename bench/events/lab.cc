#include "events/lab.h"

namespace baton::bench {

test::RabbitServer& Lab::rabbitmq() {
  if (!rabbitmq_) {
    rabbitmq_ = std::make_unique<test::RabbitServer>(test::RabbitOptions{.on_disk = true});
  }
  return *rabbitmq_;
}

}  // namespace baton::bench
