#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "broker/rabbitmq/channel.h"
#include "broker/rabbitmq/incoming.h"

namespace baton::broker::rabbitmq {

// One consumer on a connection of its own.
class RabbitmqSubscription final : public Subscription {
 public:
  static Result<std::unique_ptr<Subscription>> open(const Settings& settings,
                                                    std::string_view queue,
                                                    const SubscribeOptions& options, Deadline by);

  Result<std::vector<Delivery>> take(std::size_t most, Deadline by) override;
  Result<void> settle(std::span<const Settlement> settlements, Deadline by) override;

 private:
  RabbitmqSubscription(std::unique_ptr<Connection> connection, std::string queue)
      : connection_(std::move(connection)), queue_(std::move(queue)) {}

  [[nodiscard]] Result<void> consume(std::size_t prefetch, Deadline by);
  [[nodiscard]] Result<void> take_frame(const amqp_frame_t& frame);
  Error end(Error error);  // and give that error from now on

  std::unique_ptr<Connection> connection_;
  const std::string queue_;
  Incoming incoming_;
  std::deque<Delivery> deliveries_;    // come, not taken
  std::set<std::uint64_t> unsettled_;  // taken
  std::optional<Error> ended_;
};

}  // namespace baton::broker::rabbitmq
