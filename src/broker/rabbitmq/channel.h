#pragma once

#include <functional>
#include <string>

#include "broker/rabbitmq/connection.h"

namespace baton::broker::rabbitmq {

// A channel for requests, one at a time. A refusal of the server closes the channel; the next
// request opens it again.
class Channel {
 public:
  struct Reply {
    const void* fields = nullptr;  // of the reply's method; valid until the next frame
    int code = 0;                  // not 0: refused, and `text` says why
    std::string text;
    [[nodiscard]] bool refused() const { return code != 0; }
  };
  // For frames that come meanwhile and are no reply.
  using Others = std::function<Result<void>(const amqp_frame_t&)>;

  Channel(Connection& connection, amqp_channel_t number)
      : connection_(connection), number_(number) {}

  // The connection is unusable after an error, also if no answer came by then.
  Result<Reply> ask(amqp_method_number_t method, void* fields, Deadline by,
                    const Others& others = {});
  Result<void> open(Deadline by, const Others& others = {});
  [[nodiscard]] amqp_channel_t number() const { return number_; }

 private:
  Result<Reply> exchange(amqp_method_number_t method, void* fields, Deadline by,
                         const Others& others);

  Connection& connection_;
  amqp_channel_t number_;
  bool open_ = false;
};

// The refusal that a channel.close means, with its code and text.
[[nodiscard]] Channel::Reply refusal(const amqp_channel_close_t& close);

}  // namespace baton::broker::rabbitmq
