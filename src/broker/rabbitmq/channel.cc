#include "broker/rabbitmq/channel.h"

#include <algorithm>

namespace baton::broker::rabbitmq {
namespace {

// Whether the server sends this method by itself, not as a reply.
bool is_of_consumers(amqp_method_number_t method) {
  return method == AMQP_BASIC_DELIVER_METHOD || method == AMQP_BASIC_CANCEL_METHOD;
}

}  // namespace

Channel::Reply refusal(const amqp_channel_close_t& close) {
  constexpr std::size_t kMaxReplyText = 800;
  std::string text(view_of(close.reply_text).substr(0, kMaxReplyText));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return {.code = close.reply_code, .text = std::move(text)};
}

Result<void> Channel::open(Deadline by, const Others& others) {
  if (open_) return {};
  amqp_channel_open_t open{};
  auto reply = exchange(AMQP_CHANNEL_OPEN_METHOD, &open, by, others);
  if (!reply) return reply.error();
  if (reply->refused()) return connection_.broken(reply->text);
  open_ = true;
  return {};
}

Result<Channel::Reply> Channel::ask(amqp_method_number_t method, void* fields, Deadline by,
                                    const Others& others) {
  if (auto opened = open(by, others); !opened) return opened.error();
  return exchange(method, fields, by, others);
}

Result<Channel::Reply> Channel::exchange(amqp_method_number_t method, void* fields, Deadline by,
                                         const Others& others) {
  add_method(connection_.out(), number_, method, fields);
  while (true) {
    auto frame = connection_.next(by);
    if (!frame) return frame.error();
    if (*frame == nullptr) {
      if (connection_.blocked()) {
        return connection_.broken("the broker takes nothing now: " + connection_.blocked_why());
      }
      if (BootClock::now() >= by) return connection_.broken("the server does not answer in time");
      continue;
    }
    const amqp_frame_t& got = **frame;
    const bool is_method = got.channel == number_ && got.frame_type == AMQP_FRAME_METHOD;
    if (!is_method || is_of_consumers(got.payload.method.id)) {
      if (!others) continue;
      if (auto taken = others(got); !taken) return taken.error();
      continue;
    }
    if (got.payload.method.id != AMQP_CHANNEL_CLOSE_METHOD) {
      return Reply{.fields = got.payload.method.decoded};
    }
    Reply reply = refusal(*static_cast<const amqp_channel_close_t*>(got.payload.method.decoded));
    amqp_channel_close_ok_t ok{};
    add_method(connection_.out(), number_, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    open_ = false;
    return reply;
  }
}

}  // namespace baton::broker::rabbitmq
