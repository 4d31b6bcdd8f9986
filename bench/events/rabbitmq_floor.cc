#include "events/rabbitmq_floor.h"

#include <stdexcept>
#include <utility>

#include <amqp.h>
#include <amqp_tcp_socket.h>

#include "harness/machine.h"

namespace baton::bench {
namespace {

constexpr amqp_channel_t kPublish = 1;
constexpr amqp_channel_t kAsk = 2;

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("the floor cannot ") + what);
}

}  // namespace

RabbitmqFloor::RabbitmqFloor(int port, std::string exchange, std::string body, std::uint64_t window,
                             Headers headers)
    : state_(amqp_new_connection()),
      exchange_(std::move(exchange)),
      body_(std::move(body)),
      window_(window),
      headers_(std::move(headers)) {
  for (const auto& [name, value] : headers_) {
    amqp_table_entry_t entry{.key = bytes_of(name), .value = {.kind = AMQP_FIELD_KIND_UTF8}};
    entry.value.value.bytes = bytes_of(value);
    table_.push_back(entry);
  }
  amqp_socket_t* const socket = amqp_tcp_socket_new(state_);
  expect(amqp_socket_open(socket, "127.0.0.1", port) == AMQP_STATUS_OK, "connect");
  amqp_login(state_, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  amqp_channel_open(state_, kPublish);
  amqp_channel_open(state_, kAsk);
  amqp_confirm_select(state_, kPublish);
  expect(amqp_get_rpc_reply(state_).reply_type == AMQP_RESPONSE_NORMAL, "begin");
}

RabbitmqFloor::~RabbitmqFloor() {
  amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(state_);
}

void RabbitmqFloor::purge(const std::string& queue) {
  amqp_queue_purge(state_, kAsk, bytes_of(queue));
  expect(amqp_get_rpc_reply(state_).reply_type == AMQP_RESPONSE_NORMAL, "purge");
}

void RabbitmqFloor::publish() {
  static const std::string key = "bench.publish";
  static const std::string id = "0190b0a0-0000-7000-8000-000000000000";
  static const std::string type = "application/json";
  amqp_basic_properties_t properties{};
  properties._flags =
      AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  properties.content_type = bytes_of(type);
  properties.delivery_mode = 2;
  properties.message_id = bytes_of(id);
  if (!table_.empty()) {
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    properties.headers = {static_cast<int>(table_.size()), table_.data()};
  }
  expect(amqp_basic_publish(state_, kPublish, bytes_of(exchange_), bytes_of(key), 1, 0, &properties,
                            bytes_of(body_)) == AMQP_STATUS_OK,
         "publish");
  ++sent_;
}

void RabbitmqFloor::read_confirm() {
  amqp_frame_t frame;
  amqp_maybe_release_buffers(state_);
  expect(amqp_simple_wait_frame(state_, &frame) == AMQP_STATUS_OK, "read");
  expect(frame.frame_type == AMQP_FRAME_METHOD && frame.payload.method.id == AMQP_BASIC_ACK_METHOD,
         "have its messages taken");
  const auto* ack = static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
  confirmed_ = ack->multiple != 0 ? ack->delivery_tag : confirmed_ + 1;
}

double RabbitmqFloor::one() {
  const auto start = std::chrono::steady_clock::now();
  publish();
  while (confirmed_ < sent_) read_confirm();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Slice RabbitmqFloor::run(std::chrono::milliseconds time) {
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t before = sent_;
  while (std::chrono::steady_clock::now() - start < time) {
    while (sent_ - confirmed_ < window_) publish();
    read_confirm();
  }
  while (confirmed_ < sent_) read_confirm();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return {.steps = sent_ - before, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
}

}  // namespace baton::bench
