#pragma once

// A small HTTP/1.1 server for services inside a network: no TLS (put it behind a proxy), no
// compression, no streaming. A few threads serve all connections; handlers that block run on
// workers; everything that a client can make large, slow or many has a limit.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "baton/clock.h"
#include "baton/result.h"
#include "http/message.h"
#include "http/router.h"
#include "http/worker_pool.h"

namespace baton::http {

// One answered request, for logs and metrics.
struct Served {
  std::string method;
  std::string route;  // empty: no route matched, or the request could not be read
  std::string peer;
  int status = 0;
  std::chrono::nanoseconds took{0};  // from the end of the request to the answer
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // an IP address; 0.0.0.0 or :: for all interfaces
  std::uint16_t port = 0;             // 0: any free one; Server::port says which
  std::size_t io_threads = 2;

  // When there are more, the one that is idle for longest is closed. If none is, the newcomer may
  // still ask what is answered at once, as /healthz; else it is answered 503 and closed. There are
  // fewer if the process may not open that many files: it keeps reserved_descriptors for its
  // stores, or half of all if that is less.
  std::size_t max_connections = 1024;
  std::size_t reserved_descriptors = 128;
  std::size_t max_pending = 1024;  // requests with a handler on a worker; more are answered 429
  std::size_t max_header_bytes = 16U << 10U;
  std::size_t max_body_bytes = 1U << 20U;
  std::size_t max_requests_per_connection = 1000;

  Millis header_timeout{10'000};  // from the first byte to the end of the header; a new connection
                                  // has the same time to begin
  Millis body_timeout{30'000};
  Millis answer_timeout{60'000};  // for the handler; then 503
  Millis write_timeout{30'000};
  Millis idle_timeout{60'000};  // between two requests of a connection

  // Called on a thread that all connections share, after the answer was handed out: be quick.
  std::function<void(const Served&)> on_served;

  // The form of what the server answers by itself.
  Refusal refusal = error_response;

  // If set, asked on such a thread before each handler: a response is sent in its stead.
  std::function<std::optional<Response>(const Request&)> refuse;
};

// Whether only this machine reaches what listens there.
[[nodiscard]] BATON_EXPORT bool is_loopback_address(const std::string& address);

class BATON_EXPORT Server {
 public:
  // Listens when it returns. Handlers run on `workers`; requests beyond their limit get 503.
  static Result<std::unique_ptr<Server>> start(Router router, ServerOptions options,
                                               std::shared_ptr<WorkerPool> workers);
  ~Server();  // stop(0)
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string url() const;  // http://address:port
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] std::size_t max_connections() const;  // see ServerOptions

  // Accepts no more, lets the requests that have begun finish for up to `grace`, then closes what
  // is left. Idempotent. Not from a handler.
  void stop(Millis grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::http
