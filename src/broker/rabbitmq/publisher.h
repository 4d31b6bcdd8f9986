#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "broker/rabbitmq/channel.h"
#include "broker/rabbitmq/confirm_window.h"
#include "broker/rabbitmq/incoming.h"

namespace baton::broker::rabbitmq {

// Publishes on one channel with confirms, mandatory and persistent.
//
// A server closes the channel at the first message for an exchange that does not exist, and says
// nothing of those that were sent before it. So each exchange is asked for, on a channel of its
// own, before the first message for it is sent. If one is deleted later, what has no confirm
// becomes `unknown`, and the next message for it finds out.
class RabbitmqPublisher final : public Publisher {
 public:
  explicit RabbitmqPublisher(Settings settings) : settings_(std::move(settings)) {}

  Result<std::uint64_t> publish(std::span<const Message> messages, Deadline by) override;
  Result<std::vector<Confirm>> confirms(Deadline by) override;
  [[nodiscard]] PublisherState state() const override;

 private:
  // An exchange, or a size, that the server has refused although the message looked right;
  // remembered for a while.
  struct Refusal {
    std::string why;
    Instant until;
  };

  [[nodiscard]] Result<void> connect(Deadline by);
  [[nodiscard]] Result<void> make_room(Deadline by);
  // Why no message can be sent to this exchange; empty if one can.
  [[nodiscard]] Result<std::string> exchange_problem(const std::string& exchange, Deadline by);
  [[nodiscard]] std::string refusal_of(const Message& message) const;
  // Takes what has come, waiting for it until `by`.
  [[nodiscard]] Result<void> take_frames(Deadline by);
  [[nodiscard]] Result<void> take_frame(const amqp_frame_t& frame);
  [[nodiscard]] Result<void> take_method(const amqp_method_t& method);
  [[nodiscard]] Result<void> channel_closed(const amqp_channel_close_t& close);
  void drop(const Error& error);
  [[nodiscard]] Error blocked() const;

  const Settings settings_;
  std::unique_ptr<Connection> connection_;
  std::optional<Channel> channel_;  // to publish
  std::optional<Channel> questions_;
  ConfirmWindow window_;
  Incoming returned_;
  std::set<std::string> known_exchanges_;  // of this connection
  std::map<std::string, Refusal> refused_exchanges_;
  std::optional<std::pair<std::size_t, Instant>> most_bytes_;  // as the server said, and until when
  std::uint64_t next_tag_ = 1;
  std::vector<Confirm> confirms_;  // to be given
  std::string why_;                // of the last error
  Instant connect_at_{};           // not before, when nobody publishes
};

}  // namespace baton::broker::rabbitmq
