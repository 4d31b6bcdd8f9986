#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "broker/rabbitmq/settings.h"

namespace baton::broker::rabbitmq {

// A connected socket, with TLS if the settings say so. Only open() waits. Not thread-safe.
class Socket {
 public:
  static Result<std::unique_ptr<Socket>> open(const Settings& settings, Deadline by);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // How much was sent or read; 0 if nothing can be at the moment, -1 if the connection is broken,
  // and then problem() says why.
  ssize_t send(std::string_view bytes);
  ssize_t receive(char* bytes, std::size_t size);
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // Until there may be something to read, or if asked to send; false if `by` came first.
  bool wait(bool also_to_send, Deadline by) const;
  bool wait_to_send(Deadline by) const;

 private:
  explicit Socket(int socket) : socket_(socket) {}
  ssize_t result_of(ssize_t done);

  int socket_;
  std::unique_ptr<Tls> tls_;
  std::string problem_;
};

}  // namespace baton::broker::rabbitmq
