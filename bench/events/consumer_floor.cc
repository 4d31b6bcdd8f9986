#include "events/consumer_floor.h"

#include <stdexcept>

#include <amqp.h>
#include <amqp_tcp_socket.h>

#include "harness/machine.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr int kPrefetch = 64;
constexpr std::uint64_t kBatch = 32;

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("the floor cannot ") + what);
}

}  // namespace

struct ConsumerFloor::State {
  explicit State(const std::string& database) : session(database) {}
  amqp_connection_state_t amqp = amqp_new_connection();
  Session session;
};

ConsumerFloor::ConsumerFloor(Lab& lab, const std::string& queue, const std::string& database)
    : state_(std::make_unique<State>(database)) {
  const amqp_connection_state_t amqp = state_->amqp;
  amqp_socket_t* const socket = amqp_tcp_socket_new(amqp);
  expect(amqp_socket_open(socket, "127.0.0.1", lab.rabbitmq().port()) == AMQP_STATUS_OK, "connect");
  amqp_login(amqp, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  amqp_channel_open(amqp, kChannel);
  amqp_basic_qos(amqp, kChannel, 0, kPrefetch, 0);
  amqp_basic_consume(amqp, kChannel, amqp_cstring_bytes(queue.c_str()), amqp_empty_bytes, 0, 0, 0,
                     amqp_empty_table);
  expect(amqp_get_rpc_reply(amqp).reply_type == AMQP_RESPONSE_NORMAL, "consume");
  Session& session = state_->session;
  session.prepare("begin", "BEGIN");
  session.prepare("commit", "COMMIT");
  session.prepare("ledger",
                  "INSERT INTO floor_ledger (consumer, event_id, outcome) VALUES ($1, $2::uuid, $3)"
                  " ON CONFLICT DO NOTHING");
  session.prepare("effect", "INSERT INTO floor_effect (event_id, body) VALUES ($1::uuid, $2)");
}

ConsumerFloor::~ConsumerFloor() {
  amqp_connection_close(state_->amqp, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(state_->amqp);
}

void ConsumerFloor::consume_batch() {
  Session& session = state_->session;
  std::uint64_t last = 0;
  session.run("begin", {});
  for (std::uint64_t i = 0; i < kBatch; ++i) {
    amqp_envelope_t envelope;
    const timeval patience{30, 0};
    amqp_maybe_release_buffers(state_->amqp);
    expect(amqp_consume_message(state_->amqp, &envelope, &patience, 0).reply_type ==
               AMQP_RESPONSE_NORMAL,
           "take a message");
    const auto text = [](amqp_bytes_t bytes) {
      return std::string(static_cast<const char*>(bytes.bytes), bytes.len);
    };
    const std::string id = text(envelope.message.properties.message_id);
    const std::string body = text(envelope.message.body);
    last = envelope.delivery_tag;
    amqp_destroy_envelope(&envelope);
    session.run("ledger", {"bench", id.c_str(), "done"});
    session.run("effect", {id.c_str(), body.c_str()});
  }
  session.run("commit", {});
  expect(amqp_basic_ack(state_->amqp, kChannel, last, 1) == AMQP_STATUS_OK, "acknowledge");
}

Slice ConsumerFloor::run(std::chrono::milliseconds time) {
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  auto now = start;
  std::uint64_t done = 0;
  for (; now - start < time; now = std::chrono::steady_clock::now(), done += kBatch) {
    consume_batch();
  }
  const std::chrono::duration<double> wall = now - start;
  return {.steps = done, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
}

}  // namespace baton::bench
