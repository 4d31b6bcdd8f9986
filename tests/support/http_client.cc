#include "support/http_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace baton::test {
namespace {

using Clock = std::chrono::steady_clock;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char character) { return std::tolower(character); });
  return text;
}

HttpAnswer parse_head(const std::string& head) {
  HttpAnswer answer;
  std::size_t at = head.find("\r\n");
  answer.status = std::stoi(head.substr(head.find(' ') + 1, 3));
  while (at < head.size()) {
    const std::size_t begin = at + 2;
    at = std::min(head.find("\r\n", begin), head.size());
    const std::string line = head.substr(begin, at - begin);
    const auto colon = line.find(": ");
    if (colon != std::string::npos) {
      answer.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
  }
  return answer;
}

}  // namespace

HttpClient::HttpClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close(fd_);
    throw std::system_error(error, std::generic_category(), "connect");
  }
}

HttpClient::~HttpClient() {
  if (fd_ >= 0) close(fd_);
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void HttpClient::half_close() { shutdown(fd_, SHUT_WR); }

bool HttpClient::fill(Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd file{fd_, POLLIN, 0};
    const int ready = poll(&file, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return false;
    std::array<char, 16384> chunk{};
    const ssize_t got = recv(fd_, chunk.data(), chunk.size(), 0);
    if (got <= 0) return false;
    received_.append(chunk.data(), static_cast<std::size_t>(got));
    return true;
  }
}

std::optional<HttpAnswer> HttpClient::read(bool head, std::chrono::nanoseconds limit) {
  const auto until = Clock::now() + limit;
  std::size_t end = std::string::npos;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill(until)) return std::nullopt;
  }
  HttpAnswer answer = parse_head(received_.substr(0, end));
  received_.erase(0, end + 4);
  const auto length = answer.headers.find("content-length");
  if (head || length == answer.headers.end()) return answer;
  const std::size_t size = std::stoul(length->second);
  while (received_.size() < size) {
    if (!fill(until)) return std::nullopt;
  }
  answer.body = received_.substr(0, size);
  received_.erase(0, size);
  return answer;
}

bool HttpClient::ended(std::chrono::nanoseconds limit) {
  const auto until = Clock::now() + limit;
  while (fill(until)) {
  }
  return Clock::now() < until;
}

std::string request_text(const HttpCall& call, bool close) {
  return call.method + " " + call.path + " HTTP/1.1\r\nHost: localhost\r\n" +
         (close ? "Connection: close\r\n" : "") +
         (call.body.empty() ? "" : "Content-Length: " + std::to_string(call.body.size()) + "\r\n") +
         "\r\n" + call.body;
}

std::optional<HttpAnswer> http(int port, const HttpCall& call, std::chrono::nanoseconds limit) {
  try {
    HttpClient client(port);
    if (!client.send(request_text(call))) return std::nullopt;
    return client.read(call.method == "HEAD", limit);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace baton::test
