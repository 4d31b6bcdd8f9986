#include "store/redis/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "store/common/wait_for.h"
#include "store/redis/redis_error.h"
#include "tls/tls.h"

namespace baton::store::redis {
namespace {

constexpr Millis kClockAge{10'000};
constexpr Millis kIdle{1};
constexpr Millis kReadSlice{100};
constexpr std::size_t kMaxReplyBytes = std::size_t{1} << 28;

// What TIME answers.
std::optional<std::int64_t> time_in(const Value& value) {
  if (value.list.size() != 2) return std::nullopt;
  std::int64_t parts[2] = {0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& text = value.list[i].text;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), parts[i]);
    if (read.ec != std::errc{}) return std::nullopt;
  }
  return parts[0] * 1'000'000 + parts[1];
}

// hiredis connects in whole: its non-blocking connect would not try a host's next address.
int connect_to(const Endpoint& node, Millis patience, std::string& why) {
  const timeval limit{patience.count() / 1000, (patience.count() % 1000) * 1000};
  redisContext* context = node.port == 0
                              ? redisConnectUnixWithTimeout(node.host.c_str(), limit)
                              : redisConnectWithTimeout(node.host.c_str(), node.port, limit);
  if (context == nullptr) {
    why = "out of memory";
    return -1;
  }
  int socket = -1;
  if (context->err == 0) {
    socket = fcntl(context->fd, F_DUPFD_CLOEXEC, 0);
    if (socket < 0) why = std::strerror(errno);
  } else {
    why = context->errstr;
  }
  redisFree(context);
  return socket;
}

void tune(int socket, const Endpoint& node, Millis patience) {
  const timeval slice{0, std::chrono::microseconds(kReadSlice).count()};
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
  if (node.port == 0) return;
  const auto set = [&](int level, int option, int value) {
    (void)setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(patience.count()));
}

}  // namespace

Value value_of(const redisReply& reply) {
  Value value;
  switch (reply.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      value.kind = Value::Kind::text;
      value.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_ERROR:
      value.kind = Value::Kind::error;
      value.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_INTEGER:
      value.kind = Value::Kind::number;
      value.number = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      value.kind = Value::Kind::list;
      value.list.reserve(reply.elements);
      for (std::size_t i = 0; i < reply.elements; ++i) {
        value.list.push_back(value_of(*reply.element[i]));
      }
      break;
    default: break;
  }
  return value;
}

redisReader* new_reader() { return redisReaderCreate(); }

Connection::Connection(const Settings& settings, Endpoint node)
    : settings_(settings), node_(std::move(node)), reader_(new_reader()) {}

Connection::~Connection() {
  tls_.reset();
  if (socket_ >= 0) close(socket_);
  if (reader_ != nullptr) redisReaderFree(reader_);
}

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings, const Endpoint& node,
                                                     Deadline deadline) {
  std::unique_ptr<Connection> connection(new Connection(settings, node));
  if (auto connected = connection->connect(deadline); !connected) return connected.error();
  if (auto begun = connection->begin_session(deadline); !begun) {
    begun.error().in_doubt = false;  // nothing was asked for yet
    // With TLS 1.3 a client learns only now that its handshake was not good enough.
    if (connection->tls_ && connection->tls_->wants_certificate()) {
      begun.error().message += "; the server wants a client's certificate: give cert= and key=";
    }
    return begun.error();
  }
  return connection;
}

Error Connection::gone(const std::string& why, bool in_doubt) {
  usable_ = false;
  const std::string where = node_.port == 0 || node_ == settings_.node
                                ? settings_.location
                                : node_.host + ":" + std::to_string(node_.port);
  return Error{.code = Code::unavailable,
               .message = where + ": " + why,
               .retryable = true,
               .in_doubt = in_doubt};
}

Result<void> Connection::connect(Deadline deadline) {
  const auto left = std::chrono::ceil<Millis>(deadline - BootClock::now());
  if (left <= Millis{0} || reader_ == nullptr) return gone("no connection in time", false);
  std::string why;
  socket_ = connect_to(node_, std::min(left, settings_.apply_limit), why);
  if (socket_ < 0) return gone(why, false);
  tune(socket_, node_, settings_.apply_limit);
  if (!settings_.uses_tls) return {};
  auto tls = Tls::handshake(socket_, settings_.tls, node_.host,
                            std::min(deadline, BootClock::now() + settings_.apply_limit));
  if (!tls) return tls.error();
  tls_ = std::move(*tls);
  return {};
}

ssize_t Connection::write_bytes(std::string_view bytes) {
  if (tls_) return tls_->write(bytes.data(), bytes.size());
  return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t Connection::read_bytes(char* bytes, std::size_t size, bool may_wait) {
  if (!tls_) return recv(socket_, bytes, size, may_wait ? 0 : MSG_DONTWAIT);
  const auto got = tls_->read(bytes, size);
  if (got >= 0 || errno != EAGAIN || !may_wait) return got;
  (void)wait_for(socket_, POLLIN, BootClock::now() + kReadSlice);
  return tls_->read(bytes, size);
}

Error Connection::hung_up(bool in_doubt) {
  const bool explained = tls_ && !tls_->problem().empty();
  return gone(explained ? tls_->problem() : "the server has hung up", in_doubt);
}

// HELLO says who the server is, and tells it who we are.
Result<void> Connection::begin_session(Deadline deadline) {
  const Deadline limit = std::min(deadline, BootClock::now() + settings_.apply_limit);
  Commands commands;
  if (settings_.authenticates) {
    commands.add({"HELLO", "2", "AUTH", settings_.user, settings_.password, "SETNAME", "baton"});
  } else {
    commands.add({"HELLO", "2", "SETNAME", "baton"});
  }
  commands.add({"TIME"});
  if (settings_.database != 0) commands.add({"SELECT", std::to_string(settings_.database)});
  auto replies = exchange(commands, limit);
  if (!replies) return replies.error();
  for (const Value& reply : *replies) {
    if (reply.kind != Value::Kind::error) continue;
    usable_ = false;
    if (reply.text.find("unknown command") != std::string::npos) {
      return Error{.code = Code::bad_store,
                   .message = settings_.location + " does not know HELLO: Redis 6 or newer it is"};
    }
    return error_for(reply.text, settings_);
  }
  const Instant received = BootClock::now();
  read_greeting(replies->front());
  if (const auto time = time_in((*replies)[1])) learn_time(*time, received);
  return {};
}

void Connection::read_greeting(const Value& greeting) {
  for (std::size_t i = 0; i + 1 < greeting.list.size(); i += 2) {
    const std::string& name = greeting.list[i].text;
    const std::string& value = greeting.list[i + 1].text;
    if (name == "version") version_ = value;
    if (name == "mode") clustered_ = value == "cluster";
    if (name == "role") replica_ = value == "replica" || value == "slave";
  }
}

Result<void> Connection::flush(std::string_view bytes, Deadline deadline, bool& sent_any) {
  while (!bytes.empty()) {
    const auto sent = write_bytes(bytes);
    if (sent > 0) {
      sent_any = true;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      return errno == EPROTO ? hung_up(sent_any) : gone(std::strerror(errno), sent_any);
    }
    // A server with much to say may not listen before it is heard.
    if (!wait_for(socket_, POLLOUT | POLLIN, deadline)) {
      return gone("no answer in time", sent_any);
    }
    if (!read_some()) return hung_up(sent_any);
  }
  return {};
}

// Reads what is there, or waits a moment for it; false if the connection has gone.
bool Connection::read_some(bool may_wait) {
  std::array<char, 16384> buffer;
  for (;;) {
    const auto got = read_bytes(buffer.data(), buffer.size(), may_wait);
    if (got > 0) {
      if (redisReaderFeed(reader_, buffer.data(), static_cast<std::size_t>(got)) != REDIS_OK ||
          reader_->len > kMaxReplyBytes) {
        return false;
      }
      if (static_cast<std::size_t>(got) < buffer.size()) return true;
      may_wait = false;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

bool Connection::next(Value& value) {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_, &reply) != REDIS_OK) {
    usable_ = false;
    return false;
  }
  if (reply == nullptr) return false;
  value = value_of(*static_cast<redisReply*>(reply));
  freeReplyObject(reply);
  return true;
}

Commands& Connection::fresh_commands() {
  commands_.clear();
  return commands_;
}

Result<std::vector<Value>> Connection::exchange(const Commands& commands, Deadline deadline) {
  bool sent_any = false;
  if (auto sent = flush(commands.bytes(), deadline, sent_any); !sent) return sent.error();
  std::vector<Value> values;
  values.reserve(commands.count());
  for (;;) {
    Value value;
    while (values.size() < commands.count() && next(value)) values.push_back(std::move(value));
    if (values.size() == commands.count()) break;
    if (!usable_) return gone("an answer that is not Redis", true);
    // To block in recv takes one call, to poll takes two, but ends in time.
    const bool in_a_hurry = deadline - BootClock::now() < 2 * kReadSlice;
    if (in_a_hurry && !wait_for(socket_, POLLIN, deadline)) return gone("no answer in time", true);
    if (!read_some(!in_a_hurry)) return hung_up(true);
  }
  used_ = BootClock::now();
  return values;
}

Result<Value> Connection::ask(std::initializer_list<std::string_view> words, Deadline deadline) {
  auto values = exchange(Commands().add(words), deadline);
  if (!values) return values.error();
  return std::move(values->front());
}

Result<void> Connection::send(const Commands& commands, Deadline deadline) {
  bool sent_any = false;
  return flush(commands.bytes(), deadline, sent_any);
}

bool Connection::receive(std::vector<Value>& values) {
  if (usable_ && !read_some()) usable_ = false;
  Value value;
  while (next(value)) values.push_back(std::move(value));
  return usable_;
}

bool Connection::still_there() {
  if (!usable_ || BootClock::now() - used_ < kIdle) return usable_;
  pollfd idle{socket_, POLLIN, 0};
  // Nothing is to come: what does is the end.
  if (poll(&idle, 1, 0) != 0) usable_ = false;
  return usable_;
}

void Connection::learn_time(std::int64_t server_micros, Instant received) {
  clock_ahead_ = server_micros - micros(received);
  clock_read_ = received;
}

Result<std::int64_t> Connection::server_time_at(Instant instant, Deadline deadline) {
  if (BootClock::now() - clock_read_ > kClockAge) {
    auto time = ask({"TIME"}, std::min(deadline, BootClock::now() + settings_.apply_limit));
    if (!time) {
      time.error().in_doubt = false;  // it only looks
      return time.error();
    }
    const auto shown = time_in(*time);
    if (!shown) {
      usable_ = false;
      return error_for(time->text, settings_);
    }
    learn_time(*shown, BootClock::now());
  }
  return clock_ahead_ + micros(instant);
}

}  // namespace baton::store::redis
