#include "broker/rabbitmq/codec.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace baton::broker::rabbitmq {
namespace {

constexpr std::size_t kFrameHeader = 7;
constexpr std::size_t kFrameOverhead = kFrameHeader + 1;
constexpr char kFrameEnd = static_cast<char>(AMQP_FRAME_END);
constexpr std::uint8_t kPersistent = 2;

// Big end first.
template <typename Number>
void put(char* at, Number number) {
  for (std::size_t i = sizeof(Number); i-- > 0; number = static_cast<Number>(number >> 4U >> 4U)) {
    at[i] = static_cast<char>(number & 0xFF);
  }
}

// A frame at the end of `out` whose payload has `room` bytes until it is finished.
class Frame {
 public:
  Frame(std::string& out, std::uint8_t type, amqp_channel_t channel, std::size_t room)
      : out_(out), begin_(out.size()) {
    out_.resize(begin_ + kFrameOverhead + room);
    out_[begin_] = static_cast<char>(type);
    put(&out_[begin_ + 1], channel);
  }
  [[nodiscard]] char* payload() { return &out_[begin_ + kFrameHeader]; }
  void finish(std::size_t size) {
    put(&out_[begin_ + 3], static_cast<std::uint32_t>(size));
    out_[begin_ + kFrameHeader + size] = kFrameEnd;
    out_.resize(begin_ + kFrameOverhead + size);
  }
  void give_up() { out_.resize(begin_); }

 private:
  std::string& out_;
  std::size_t begin_;
};

}  // namespace

void add_protocol_header(std::string& out) {
  out.append({'A', 'M', 'Q', 'P', 0, AMQP_PROTOCOL_VERSION_MAJOR, AMQP_PROTOCOL_VERSION_MINOR,
              AMQP_PROTOCOL_VERSION_REVISION});
}

void add_heartbeat(std::string& out) { Frame(out, AMQP_FRAME_HEARTBEAT, 0, 0).finish(0); }

void add_method(std::string& out, amqp_channel_t channel, amqp_method_number_t method, void* fields,
                std::size_t room) {
  Frame frame(out, AMQP_FRAME_METHOD, channel, room);
  put(frame.payload(), method);
  const int size = amqp_encode_method(method, fields, {room - 4, frame.payload() + 4});
  if (size < 0) {
    frame.give_up();
    throw std::length_error("an AMQP method is too long");
  }
  frame.finish(4 + static_cast<std::size_t>(size));
}

void add_empty_content(std::string& out, amqp_channel_t channel) {
  constexpr std::size_t kSize = 14;  // class, weight, size of the body, flags: all but the class 0
  Frame frame(out, AMQP_FRAME_HEADER, channel, kSize);
  put(frame.payload(), static_cast<std::uint16_t>(AMQP_BASIC_CLASS));
  frame.finish(kSize);
}

bool add_message(std::string& out, amqp_channel_t channel, const Message& message,
                 std::size_t frame_max) {
  const std::size_t begin = out.size();
  amqp_basic_publish_t publish{};
  publish.exchange = bytes_of(message.exchange);
  publish.routing_key = bytes_of(message.routing_key);
  publish.mandatory = 1;
  add_method(out, channel, AMQP_BASIC_PUBLISH_METHOD, &publish,
             32 + message.exchange.size() + message.routing_key.size());

  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.content_type = bytes_of(message.content_type);
  properties.delivery_mode = kPersistent;
  if (!message.id.empty()) {
    properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.message_id = bytes_of(message.id);
  }
  std::size_t room = 64 + message.content_type.size() + message.id.size();
  std::vector<amqp_table_entry_t> entries;
  if (!message.headers.empty()) {
    entries.reserve(message.headers.size());
    for (const auto& [name, value] : message.headers) {
      entries.push_back(entry_of(name, value));
      room += 8 + name.size() + value.size();
    }
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    properties.headers = table_of(entries);
  }
  constexpr std::size_t kFixed = 12;  // class, weight, size of the body
  Frame frame(out, AMQP_FRAME_HEADER, channel, kFixed + room);
  put(frame.payload(), static_cast<std::uint16_t>(AMQP_BASIC_CLASS));
  put(frame.payload() + 2, std::uint16_t{0});
  put(frame.payload() + 4, static_cast<std::uint64_t>(message.body.size()));
  const int size =
      amqp_encode_properties(AMQP_BASIC_CLASS, &properties, {room, frame.payload() + kFixed});
  if (size < 0 || kFrameOverhead + kFixed + static_cast<std::size_t>(size) > frame_max) {
    out.resize(begin);
    return false;
  }
  frame.finish(kFixed + static_cast<std::size_t>(size));

  const std::size_t most = frame_max - kFrameOverhead;
  for (std::size_t done = 0; done < message.body.size();) {
    const std::size_t part = std::min(most, message.body.size() - done);
    Frame body(out, AMQP_FRAME_BODY, channel, part);
    message.body.copy(body.payload(), part, done);
    body.finish(part);
    done += part;
  }
  return true;
}

}  // namespace baton::broker::rabbitmq
