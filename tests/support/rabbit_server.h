#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

struct RabbitOptions {
  std::map<std::string, std::string> settings;  // as in rabbitmq.conf
  bool tls = false;      // also listens for TLS; say ssl_options.… in `settings`
  bool on_disk = false;  // flushes cost what they cost
};

// A RabbitMQ of this test's own on 127.0.0.1, with an epmd of its own. Its files are in memory
// unless asked otherwise. It keeps its ports and its data over restarts. It ends with this object,
// and also if the test process dies. To start it takes 5 seconds, on busy cores 20: share one among
// the cases of a program. Not thread-safe. Every failure is an exception.
class RabbitServer {
 public:
  explicit RabbitServer(RabbitOptions options = {});  // returns when it listens
  ~RabbitServer();
  RabbitServer(const RabbitServer&) = delete;
  RabbitServer& operator=(const RabbitServer&) = delete;

  void start();
  void stop();   // as an operator does
  void crash();  // SIGKILL

  [[nodiscard]] std::string url(std::string_view options = "") const;      // "heartbeat=5s&…"
  [[nodiscard]] std::string tls_url(std::string_view options = "") const;  // of localhost
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int tls_port() const { return tls_port_; }
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] std::string log() const;

  // What rabbitmqctl prints; throws if it fails. Takes up to a second: ask by AMQP if that can
  // tell.
  std::string ctl(const std::vector<std::string>& words) const;

  // While the alarm is on, the broker takes no messages.
  void set_memory_alarm(bool on) const;

 private:
  [[nodiscard]] bool try_start();
  [[nodiscard]] std::map<std::string, std::string> environment() const;
  void write_configuration() const;

  RabbitOptions options_;
  TempDir dir_;
  int port_ = 0;
  int tls_port_ = 0;
  int distribution_port_ = 0;
  int epmd_port_ = 0;
  std::unique_ptr<Process> epmd_;
  std::unique_ptr<Process> server_;
  std::unique_ptr<Process> guard_;
};

}  // namespace baton::test
