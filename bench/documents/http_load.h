#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/slices.h"

namespace baton::bench {

// POSTs documents on several connections of one thread, each of which waits for its answer before
// it asks again.
class HttpLoad {
 public:
  HttpLoad(int port, int connections);
  ~HttpLoad();
  HttpLoad(const HttpLoad&) = delete;
  HttpLoad& operator=(const HttpLoad&) = delete;

  // The body of the next request; nothing: later. Asked at least every millisecond.
  using Next = std::function<std::optional<std::string>()>;
  // The body of an answer 201, and when its request was sent. Any other answer is an exception.
  using Answered =
      std::function<void(const std::string& body, std::chrono::steady_clock::time_point sent)>;

  // Returns when the time is over and every request is answered.
  Slice run(std::chrono::milliseconds time, const Next& next, const Answered& answered = {});

 private:
  struct Connection {
    int socket = -1;
    bool busy = false;
    std::chrono::steady_clock::time_point sent;
    std::string received;
  };
  void connect(Connection& connection) const;
  static void send(Connection& connection, const std::string& body);
  // False: the answer is not complete.
  bool read(Connection& connection, const Answered& answered) const;

  const int port_;
  std::vector<Connection> connections_;
};

// As a user of the platform writes them: 400 bytes of English.
[[nodiscard]] std::string a_document();

}  // namespace baton::bench
