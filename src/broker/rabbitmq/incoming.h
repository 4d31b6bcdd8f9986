#pragma once

#include <cstdint>
#include <string>

#include "baton/broker.h"
#include "broker/rabbitmq/codec.h"

namespace baton::broker::rabbitmq {

// A message with content that comes in several frames: a delivery, or one that is returned.
class Incoming {
 public:
  void begin(const amqp_basic_deliver_t& deliver);
  void begin(const amqp_basic_return_t& returned);

  // A frame with a header or a part of the body; false if none was expected, which is not AMQP.
  [[nodiscard]] bool add(const amqp_frame_t& frame);
  [[nodiscard]] bool whole() const { return stage_ == Stage::whole; }

  // Of a body over kMaxMessageBody, from a publisher that is not Baton's, only one byte more is
  // kept. A dead letter has the exchange and the routing key that it was published with.
  [[nodiscard]] Delivery& delivery() { return delivery_; }
  [[nodiscard]] const std::string& reply_text() const { return reply_text_; }

 private:
  enum class Stage : std::uint8_t { none, header, body, whole };
  void begin(const amqp_bytes_t& exchange, const amqp_bytes_t& routing_key);
  void take_headers(const amqp_table_t& headers);
  void take_death(const amqp_field_value_t& deaths);

  Stage stage_ = Stage::none;
  Delivery delivery_;
  std::uint64_t body_left_ = 0;
  std::string reply_text_;
};

}  // namespace baton::broker::rabbitmq
