#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

struct RedisOptions {
  std::map<std::string, std::string> settings;  // as in redis.conf
};

// A Redis server of this test's own, on 127.0.0.1 and on a socket in its own directory. It keeps
// its port over restarts, and its data if the settings say so (appendonly). It ends with this
// object, and also if the test process dies. Not thread-safe. Every failure is an exception: a
// missing server is never a reason to skip.
class RedisServer {
 public:
  // Starts the server and returns when it answers.
  explicit RedisServer(RedisOptions options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  void start();
  void stop();   // as an operator does; does nothing if it is stopped
  void crash();  // SIGKILL

  // Takes effect at the next start.
  void set(const std::string& name, const std::string& value) { options_.settings[name] = value; }

  std::string url(std::string_view options = "") const;  // "prefix=a&…"
  std::string socket_url(std::string_view options = "") const;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  pid_t pid() const;  // throws if stopped
  std::string log() const;

  // What redis-cli prints for one command. Throws if the server answers with an error.
  std::string ask(const std::vector<std::string>& words) const;

 private:
  bool try_start();
  bool answers() const;

  RedisOptions options_;
  TempDir dir_{"redis"};
  int port_ = 0;
  std::unique_ptr<Process> server_;
  std::unique_ptr<Process> guard_;
};

}  // namespace baton::test
