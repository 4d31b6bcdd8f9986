#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/rabbitmq/channel.h"
#include "broker/rabbitmq/incoming.h"

namespace baton::broker::rabbitmq {

// Consumers of one or several queues, on a channel of a connection of their own.
class RabbitmqSubscription final : public Subscription {
 public:
  static Result<std::unique_ptr<Subscription>> open(const Settings& settings,
                                                    std::vector<std::string> queues,
                                                    const SubscribeOptions& options, Deadline by);

  Result<std::vector<Delivery>> take(std::size_t most, Deadline by) override;
  Result<void> settle(std::span<const Settlement> settlements, Deadline by) override;

 private:
  RabbitmqSubscription(std::unique_ptr<Connection> connection, std::vector<std::string> queues)
      : connection_(std::move(connection)), queues_(std::move(queues)) {}

  [[nodiscard]] Result<void> consume(std::size_t prefetch, Deadline by);
  [[nodiscard]] Error refused(const std::string& queue, const Channel::Reply& reply) const;
  [[nodiscard]] std::string queue_of(std::string_view consumer) const;
  [[nodiscard]] Result<void> take_frame(const amqp_frame_t& frame);
  Error end(Error error);  // and give that error from now on

  std::unique_ptr<Connection> connection_;
  const std::vector<std::string> queues_;  // the tag of a consumer is its place here
  Incoming incoming_;
  std::deque<Delivery> deliveries_;    // come, not taken
  std::set<std::uint64_t> unsettled_;  // taken
  std::optional<Error> ended_;
};

}  // namespace baton::broker::rabbitmq
