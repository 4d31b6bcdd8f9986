#include "broker/rabbitmq/connection.h"

#include <algorithm>
#include <new>

#include "baton/version.h"

namespace baton::broker::rabbitmq {
namespace {

constexpr int kFrameMax = 131072;  // also the most that librabbitmq takes before it is tuned
constexpr std::uint16_t kMostChannels = 8;
constexpr Millis kGoodbye{200};
constexpr std::size_t kMaxText = 400;  // of what a server says

// One line, and not too long.
std::string line_of(const amqp_bytes_t& bytes) {
  std::string line(view_of(bytes).substr(0, kMaxText));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return line;
}

std::string text_in(const amqp_table_t& table, std::string_view key) {
  for (int i = 0; i < table.num_entries; ++i) {
    const auto& entry = table.entries[i];
    if (view_of(entry.key) == key && entry.value.kind == AMQP_FIELD_KIND_UTF8) {
      return line_of(entry.value.value.bytes);
    }
  }
  return {};
}

}  // namespace

Connection::Connection(const Settings& settings, std::unique_ptr<Socket> socket)
    : settings_(settings), socket_(std::move(socket)), state_(amqp_new_connection()) {
  if (!state_) throw std::bad_alloc();
  last_sent_ = last_received_ = BootClock::now();
}

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings,
                                                     std::string_view purpose, Deadline by) {
  auto socket = Socket::open(settings, by);
  if (!socket) return socket.error();
  std::unique_ptr<Connection> connection(new Connection(settings, std::move(*socket)));
  if (auto begun = connection->begin(purpose, by); !begun) return begun.error();
  return connection;
}

Connection::~Connection() {
  if (!usable_ || !open_ || blocked_ || unsent() > 0) return;
  amqp_connection_close_t close{.reply_code = AMQP_REPLY_SUCCESS};
  add_method(out_, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
  // Until the server has hung up: a socket that is closed with something to read resets the
  // connection, and the server would not read what was sent last.
  const Deadline by = BootClock::now() + kGoodbye;
  while (usable_ && BootClock::now() < by) {
    if (auto frame = next(by); !frame) return;
  }
}

Error Connection::broken(const std::string& why) {
  usable_ = false;
  return {.code = Code::unavailable, .message = settings_.location + ": " + why, .retryable = true};
}

void Connection::add_start_ok(std::string_view purpose) {
  std::array<amqp_table_entry_t, 6> able{
      entry_of("publisher_confirms", true),         entry_of("consumer_cancel_notify", true),
      entry_of("connection.blocked", true),         entry_of("authentication_failure_close", true),
      entry_of("exchange_exchange_bindings", true), entry_of("basic.nack", true)};
  std::array<amqp_table_entry_t, 5> properties{
      entry_of("product", std::string_view("Baton")), entry_of("version", baton::version),
      entry_of("platform", std::string_view("C++")), entry_of("connection_name", purpose),
      amqp_table_entry_t{bytes_of("capabilities"), {}}};
  properties.back().value.kind = AMQP_FIELD_KIND_TABLE;
  properties.back().value.value.table = table_of(able);
  std::string response;
  response.append(1, '\0').append(settings_.user).append(1, '\0').append(settings_.password);
  amqp_connection_start_ok_t start{.client_properties = table_of(properties),
                                   .mechanism = bytes_of("PLAIN"),
                                   .response = bytes_of(response),
                                   .locale = bytes_of("en_US")};
  add_method(out_, 0, AMQP_CONNECTION_START_OK_METHOD, &start, 4096 + response.size());
}

Result<void> Connection::begin(std::string_view purpose, Deadline by) {
  add_protocol_header(out_);
  if (auto done = expect(AMQP_CONNECTION_START_METHOD, by); !done) return done;
  const auto* start = static_cast<const amqp_connection_start_t*>(frame_.payload.method.decoded);
  product_ = text_in(start->server_properties, "product");
  version_ = text_in(start->server_properties, "version");
  add_start_ok(purpose);
  if (auto done = expect(AMQP_CONNECTION_TUNE_METHOD, by); !done) return done;
  const auto* tune = static_cast<const amqp_connection_tune_t*>(frame_.payload.method.decoded);
  amqp_connection_tune_ok_t tuned{
      .channel_max =
          tune->channel_max == 0 ? kMostChannels : std::min(kMostChannels, tune->channel_max),
      .frame_max = tune->frame_max == 0 ? std::uint32_t{kFrameMax}
                                        : std::min(std::uint32_t{kFrameMax}, tune->frame_max),
      .heartbeat = static_cast<std::uint16_t>(settings_.heartbeat.count() / 1000)};
  frame_max_ = std::max<std::size_t>(tuned.frame_max, AMQP_FRAME_MIN_SIZE);
  // Its heartbeats, which it would send itself, stay off.
  if (amqp_tune_connection(state_.get(), tuned.channel_max, static_cast<int>(frame_max_), 0) !=
      AMQP_STATUS_OK) {
    return broken("the server's limits cannot be met");
  }
  add_method(out_, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &tuned);
  amqp_connection_open_t open{.virtual_host = bytes_of(settings_.vhost)};
  add_method(out_, 0, AMQP_CONNECTION_OPEN_METHOD, &open);
  if (auto done = expect(AMQP_CONNECTION_OPEN_OK_METHOD, by); !done) return done;
  open_ = true;
  return {};
}

// During the handshake everything is on channel 0.
Result<void> Connection::expect(amqp_method_number_t method, Deadline by) {
  while (true) {
    auto decoded = decode();
    if (!decoded) return decoded.error();
    if (*decoded) {
      if (frame_.frame_type == AMQP_FRAME_METHOD && frame_.payload.method.id == method) return {};
      if (auto taken = take_control_frame(); !taken) return taken.error();
      continue;
    }
    if (auto sent = send_some(); !sent) return sent;
    auto read = read_some();
    if (!read) return read.error();
    if (!*read && !socket_->wait(unsent() > 0, by)) {
      return broken("the server does not answer in time");
    }
  }
}

Result<void> Connection::send_some() {
  while (unsent() > 0) {
    const auto sent = socket_->send(std::string_view(out_).substr(sent_));
    if (sent < 0) return broken(socket_->problem());
    if (sent == 0) break;
    sent_ += static_cast<std::size_t>(sent);
    last_sent_ = BootClock::now();
  }
  if (unsent() == 0) {
    out_.clear();
    sent_ = 0;
  } else if (sent_ > out_.size() / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return {};
}

Result<void> Connection::flush(Deadline by) {
  while (true) {
    if (auto sent = send_some(); !sent) return sent;
    if (unsent() == 0) return {};
    if (!socket_->wait_to_send(by)) return broken("the server takes nothing");
  }
}

Result<bool> Connection::read_some() {
  if (in_begin_ < in_end_) return true;
  const auto got = socket_->receive(in_.data(), in_.size());
  if (got < 0) return broken(socket_->problem());
  in_begin_ = 0;
  in_end_ = static_cast<std::size_t>(got);
  if (got > 0) last_received_ = BootClock::now();
  return got > 0;
}

Result<bool> Connection::decode() {
  amqp_maybe_release_buffers(state_.get());
  while (in_begin_ < in_end_) {
    frame_ = {};
    const int used =
        amqp_handle_input(state_.get(), {in_end_ - in_begin_, in_.data() + in_begin_}, &frame_);
    if (used < 0) return broken(std::string("not AMQP: ") + amqp_error_string2(used));
    in_begin_ += static_cast<std::size_t>(used);
    if (frame_.frame_type != 0) return true;
    if (used == 0) break;
  }
  return false;
}

Error Connection::closed_by_server(const amqp_connection_close_t& close) {
  usable_ = false;
  Error error{.code = Code::unavailable,
              .message = settings_.location + ": " + line_of(close.reply_text),
              .retryable = true};
  if (close.reply_code == AMQP_ACCESS_REFUSED || close.reply_code == AMQP_NOT_ALLOWED) {
    error.code = Code::unauthorized;
    error.retryable = false;
  }
  return error;
}

Result<bool> Connection::take_control_frame() {
  if (frame_.frame_type == AMQP_FRAME_HEARTBEAT) return false;
  if (frame_.frame_type != AMQP_FRAME_METHOD) return broken("it speaks another version of AMQP");
  switch (frame_.payload.method.id) {
    case AMQP_CONNECTION_CLOSE_METHOD: {
      const Error error = closed_by_server(
          *static_cast<const amqp_connection_close_t*>(frame_.payload.method.decoded));
      amqp_connection_close_ok_t ok{};
      add_method(out_, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
      (void)send_some();
      usable_ = false;
      return error;
    }
    case AMQP_CONNECTION_CLOSE_OK_METHOD: return broken("closed");
    case AMQP_CONNECTION_BLOCKED_METHOD:
      blocked_ = true;
      blocked_why_ = line_of(
          static_cast<const amqp_connection_blocked_t*>(frame_.payload.method.decoded)->reason);
      return true;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      blocked_ = false;
      blocked_why_.clear();
      return true;
    default: return broken("an unexpected method in the handshake");
  }
}

Result<const amqp_frame_t*> Connection::next(Deadline by) {
  if (!usable_) return broken("the connection is closed");
  while (true) {
    auto decoded = decode();
    if (!decoded) return decoded.error();
    if (*decoded) {
      if (frame_.channel != 0 && frame_.frame_type != AMQP_FRAME_HEARTBEAT) return &frame_;
      auto changed = take_control_frame();
      if (!changed) return changed.error();
      if (*changed) return nullptr;
      continue;
    }
    const Millis half = settings_.heartbeat / 2;
    if (unsent() == 0 && BootClock::now() - last_sent_ >= half) add_heartbeat(out_);
    if (auto sent = send_some(); !sent) return sent.error();
    auto read = read_some();
    if (!read) return read.error();
    if (*read) continue;
    const Instant silent = last_received_ + 2 * settings_.heartbeat;
    const Instant now = BootClock::now();
    if (now >= silent) return broken("no heartbeat of the server");
    if (now >= by) return nullptr;
    const Instant until = std::min(by, silent);
    (void)socket_->wait(unsent() > 0, unsent() > 0 ? until : std::min(until, last_sent_ + half));
  }
}

}  // namespace baton::broker::rabbitmq
