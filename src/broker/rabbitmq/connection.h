#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "baton/broker.h"
#include "broker/rabbitmq/codec.h"
#include "broker/rabbitmq/socket.h"

namespace baton::broker::rabbitmq {

// One AMQP connection: frames in and out, heartbeats, and whether the server blocks it.
//
// librabbitmq only encodes and decodes. Its own sends and receives can wait for ever (a server with
// an alarm reads nothing), and send each frame of a message by itself. Here frames are added to a
// buffer; every call sends what the socket takes, and none waits past its deadline. Heartbeats are
// sent and expected by the same calls, so the owner calls next() at least every half heartbeat.
//
// Not thread-safe. After an error the connection is unusable and its owner opens a new one.
class Connection {
 public:
  // `purpose` is shown to operators of the server.
  static Result<std::unique_ptr<Connection>> open(const Settings& settings,
                                                  std::string_view purpose, Deadline by);
  ~Connection();  // says goodbye if the server listens, for a moment
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // For frames to send: add_method() and the like.
  [[nodiscard]] std::string& out() { return out_; }
  [[nodiscard]] std::size_t unsent() const { return out_.size() - sent_; }
  Result<void> send_some();         // what the socket takes now
  Result<void> flush(Deadline by);  // all; an error if it does not take it in time

  // The next frame of a channel, sending and waiting until then. Null: nothing has come by then,
  // or the server has blocked or unblocked the connection. The frame is valid until the next call.
  Result<const amqp_frame_t*> next(Deadline by);

  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] bool blocked() const { return blocked_; }
  [[nodiscard]] const std::string& blocked_why() const { return blocked_why_; }
  [[nodiscard]] std::size_t frame_max() const { return frame_max_; }
  [[nodiscard]] const std::string& product() const { return product_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }

  Error broken(const std::string& why);  // and unusable from now on

 private:
  struct FreeState {
    void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
  };
  using State = std::unique_ptr<amqp_connection_state_t_, FreeState>;

  Connection(const Settings& settings, std::unique_ptr<Socket> socket);
  Result<void> begin(std::string_view purpose, Deadline by);
  void add_start_ok(std::string_view purpose);
  Result<void> expect(amqp_method_number_t method, Deadline by);
  Result<bool> decode();  // a frame into frame_, from what has been read
  Result<bool> read_some();
  Result<bool> take_control_frame();  // whether something was blocked or unblocked
  [[nodiscard]] Error closed_by_server(const amqp_connection_close_t& close);

  const Settings settings_;
  std::unique_ptr<Socket> socket_;
  State state_;
  std::string out_;
  std::size_t sent_ = 0;  // bytes at the front of out_
  std::array<char, 65536> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  amqp_frame_t frame_{};
  std::size_t frame_max_ = AMQP_FRAME_MIN_SIZE;
  Instant last_sent_;
  Instant last_received_;
  bool usable_ = true;
  bool open_ = false;
  bool blocked_ = false;
  std::string blocked_why_;
  std::string product_;
  std::string version_;
};

}  // namespace baton::broker::rabbitmq
