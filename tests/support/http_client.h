#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "support/wait.h"

namespace baton::test {

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// A connection to a server on 127.0.0.1 that sends exactly what it is told to, right or wrong.
class HttpClient {
 public:
  explicit HttpClient(int port);  // throws if nobody listens
  ~HttpClient();
  HttpClient(HttpClient&& other) noexcept;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool send(std::string_view bytes);
  void half_close();

  // One answer, the next in turn. Nothing if the connection ends or `limit` passes before it is
  // complete. `head`: it has no body.
  std::optional<HttpAnswer> read(bool head = false, std::chrono::nanoseconds limit = patience);

  // Whether the server ends the connection within `limit`.
  bool ended(std::chrono::nanoseconds limit = patience);

 private:
  bool fill(std::chrono::steady_clock::time_point until);

  int fd_ = -1;
  std::string received_;
};

struct HttpCall {
  std::string method = "GET";
  std::string path = "/";
  std::string body = {};
};

[[nodiscard]] std::string request_text(const HttpCall& call, bool close = true);

// One request on a connection of its own. Nothing if there was no complete answer.
[[nodiscard]] std::optional<HttpAnswer> http(int port, const HttpCall& call,
                                             std::chrono::nanoseconds limit = patience);

}  // namespace baton::test
