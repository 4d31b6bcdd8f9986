#include "documents/http_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "harness/machine.h"

namespace baton::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{30};

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("POST: " + what); }

}  // namespace

HttpLoad::HttpLoad(int port, int connections)
    : port_(port), connections_(static_cast<std::size_t>(connections)) {}

HttpLoad::~HttpLoad() {
  for (const Connection& one : connections_) {
    if (one.socket >= 0) ::close(one.socket);
  }
}

void HttpLoad::connect(Connection& connection) const {
  connection.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port_))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(connection.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    fail("nobody listens");
  }
  const int on = 1;
  ::setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// A request of this size fits into the buffer of a socket.
void HttpLoad::send(Connection& connection, const std::string& body) {
  const std::string request =
      "POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  if (::send(connection.socket, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    fail("cannot send");
  }
  connection.busy = true;
  connection.sent = Clock::now();
}

bool HttpLoad::read(Connection& connection, const Answered& answered) const {
  char buffer[4096];
  const ssize_t got = ::recv(connection.socket, buffer, sizeof buffer, 0);
  if (got <= 0) fail("the server has hung up");
  connection.received.append(buffer, static_cast<std::size_t>(got));
  std::string& text = connection.received;
  const auto head = text.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  const auto length_at = text.find("Content-Length: ");
  if (length_at > head) fail("an answer without a length: " + text);
  const auto end = head + 4 + std::stoul(text.substr(length_at + 16));
  if (text.size() < end) return false;
  if (text.substr(9, 3) != "201") fail("answered " + text);
  if (answered) answered(text.substr(head + 4), connection.sent);
  connection.busy = false;
  if (text.find("Connection: close") < head) {
    ::close(connection.socket);
    connection.socket = -1;
  }
  text.clear();
  return true;
}

Slice HttpLoad::run(std::chrono::milliseconds time, const Next& next, const Answered& answered) {
  const double cpu = process_cpu_seconds();
  const auto start = Clock::now();
  Slice slice;
  std::size_t busy = 0;
  std::vector<pollfd> polled(connections_.size());
  for (;;) {
    const auto now = Clock::now();
    const bool over = now - start >= time;
    if (over && busy == 0) break;
    if (now - start > time + kPatience) fail("no answer");
    for (Connection& one : connections_) {
      if (one.busy || over) continue;
      const auto body = next();
      if (!body) break;
      if (one.socket < 0) connect(one);
      send(one, *body);
      ++busy;
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      polled[i] = {.fd = connections_[i].busy ? connections_[i].socket : -1, .events = POLLIN};
    }
    if (::poll(polled.data(), polled.size(), 1) <= 0) continue;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0 || !read(connections_[i], answered)) continue;
      --busy;
      ++slice.steps;
    }
  }
  slice.wall = std::chrono::duration<double>(Clock::now() - start).count();
  slice.cpu = process_cpu_seconds() - cpu;
  return slice;
}

std::string a_document() {
  static int number = 0;
  return R"({"title": "Letter )" + std::to_string(++number) +
         R"(", "contentType": "text/plain", "owner": "ann", "content": ")"
         "Dear Bob, this is the letter that you asked for. It says that the report of the last "
         "year is ready, that the summary and the results were checked by two of us, and that the "
         "analysis of the payments is still open. We hope to send it with the next invoice, which "
         "will also have the total amount for the contract. Please tell us whether you need "
         R"(anything else before the meeting in spring. Sincerely yours, Ann"})";
}

}  // namespace baton::bench
