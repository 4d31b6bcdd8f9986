#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "baton/clock.h"
#include "baton/result.h"
#include "store/redis/commands.h"
#include "store/redis/settings.h"

struct redisReply;
struct redisReader;

namespace baton::store::redis {

// The answer of a server to one command.
struct Value {
  enum class Kind : std::uint8_t { nothing, text, number, list, error };
  Kind kind = Kind::nothing;
  std::string text;  // of an error too: its first word is its kind
  std::int64_t number = 0;
  std::vector<Value> list;

  [[nodiscard]] bool is_error(std::string_view word) const {
    return kind == Kind::error && text.starts_with(word);
  }
};

[[nodiscard]] Value value_of(const redisReply& reply);

// Reads replies; nullptr if there is no memory.
[[nodiscard]] redisReader* new_reader();

// One connection to one server. Every wait ends at its deadline. Not thread-safe.
//
// A connection is never repaired: after an error it is unusable, and its owner opens a new one.
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const Settings& settings, const Endpoint& node,
                                                  Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Empty, and with room: for what to exchange next.
  Commands& fresh_commands();

  // A reply a command. An error in a reply is a reply.
  Result<std::vector<Value>> exchange(const Commands& commands, Deadline deadline);
  Result<Value> ask(std::initializer_list<std::string_view> words, Deadline deadline);

  // For a subscriber: only sends; and reads what has arrived, false if the connection has gone.
  Result<void> send(const Commands& commands, Deadline deadline);
  bool receive(std::vector<Value>& values);
  [[nodiscard]] int socket() const { return socket_; }

  [[nodiscard]] bool usable() const { return usable_; }
  void give_up() { usable_ = false; }

  // Looks whether the server has hung up while nobody used the connection.
  bool still_there();

  [[nodiscard]] bool clustered() const { return clustered_; }
  [[nodiscard]] bool is_replica() const { return replica_; }
  [[nodiscard]] const std::string& server_version() const { return version_; }

  // The server's time at `instant`, in microseconds, or an earlier time, never a later one: so a
  // script that is to stop at this time stops early enough.
  Result<std::int64_t> server_time_at(Instant instant, Deadline deadline);

  // The server's clock showed `micros` before `received`.
  void learn_time(std::int64_t micros, Instant received);

 private:
  Connection(const Settings& settings, Endpoint node);

  Result<void> connect(Deadline deadline);
  Result<void> begin_session(Deadline deadline);
  Result<void> flush(std::string_view bytes, Deadline deadline, bool& sent_any);
  bool next(Value& value);
  bool read_some(bool may_wait = false);
  ssize_t write_bytes(std::string_view bytes);
  ssize_t read_bytes(char* bytes, std::size_t size, bool may_wait);
  Error hung_up(bool in_doubt);
  Error gone(const std::string& why, bool in_doubt);
  void read_greeting(const Value& greeting);

  const Settings& settings_;
  Endpoint node_;
  int socket_ = -1;
  std::unique_ptr<Tls> tls_;  // with rediss:
  redisReader* reader_;
  Commands commands_;
  bool usable_ = true;
  bool clustered_ = false;
  bool replica_ = false;
  std::string version_;
  Instant used_{};
  std::int64_t clock_ahead_ = 0;  // the server's over ours, at least
  Instant clock_read_{};
};

[[nodiscard]] inline std::int64_t micros(Instant instant) {
  return std::chrono::floor<std::chrono::microseconds>(instant.time_since_epoch()).count();
}

}  // namespace baton::store::redis
