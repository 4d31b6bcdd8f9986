#include "support/fault_proxy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace baton::test {
namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void close_with_reset(int socket) {
  const linger at_once{1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(socket);
}

void no_delay(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

// Two sockets, and for each direction what is on its way.
struct FaultProxy::Link {
  struct Chunk {
    Clock::time_point due;
    std::string bytes;  // none: the sender has closed its end
  };
  struct Way {
    int from;
    int to;
    std::deque<Chunk> chunks;
    bool ended = false;   // nothing more comes
    bool passed = false;  // and the receiver knows
  };
  std::array<Way, 2> ways;
  bool dead = false;
  bool silent = false;
  bool held_back = false;
  bool swallows = false;

  Link(int client, int server) : ways{Way{client, server, {}}, Way{server, client, {}}} {}
  ~Link() {
    close(ways[0].from);
    close(ways[0].to);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void receive(Way& way, std::chrono::milliseconds delay) const {
    constexpr std::size_t kMost = 1 << 20;
    std::size_t held = 0;
    for (const auto& chunk : way.chunks) held += chunk.bytes.size();
    std::array<char, 16384> buffer;
    while (!way.ended && held < kMost) {
      const auto got = recv(way.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) way.ended = true;
        if (way.ended) way.chunks.push_back({Clock::now() + delay, {}});
        return;
      }
      if (got == 0) way.ended = true;
      way.chunks.push_back(
          {Clock::now() + delay, std::string(buffer.data(), static_cast<std::size_t>(got))});
      held += static_cast<std::size_t>(got);
    }
  }

  void send_due(Way& way) {
    while (!way.chunks.empty() && way.chunks.front().due <= Clock::now()) {
      std::string& bytes = way.chunks.front().bytes;
      if (bytes.empty()) {
        shutdown(way.to, SHUT_WR);
        way.passed = true;
      } else {
        const auto put = send(way.to, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN) return;
        if (put < 0) {
          dead = true;
          return;
        }
        bytes.erase(0, static_cast<std::size_t>(put));
        if (!bytes.empty()) return;
      }
      way.chunks.pop_front();
    }
  }
};

FaultProxy::FaultProxy(int target_port)
    : target_port_(target_port),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_in address = local(0);
  socklen_t length = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 128) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

FaultProxy::~FaultProxy() {
  thread_.request_stop();
  signal();
  thread_.join();
  links_.clear();
  close(listener_);
  close(event_);
}

void FaultProxy::signal() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(event_, &one, sizeof one);
}

void FaultProxy::cut() {
  cut_ = true;
  signal();
}

void FaultProxy::heal() {
  cut_ = false;
  signal();
}

void FaultProxy::silence() {
  silence_ = true;
  signal();
}

void FaultProxy::delay(std::chrono::milliseconds by) {
  delay_ms_ = by.count();
  signal();
}

void FaultProxy::reset() {
  reset_ = true;
  signal();
}

void FaultProxy::hold(std::string text) {
  const std::lock_guard lock(mutex_);
  hold_ = std::move(text);
  held_.clear();
}

std::string FaultProxy::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

void FaultProxy::let_go() {
  let_go_ = true;
  signal();
}

bool FaultProxy::is_to_be_held(const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  if (hold_.empty() || bytes.find(hold_) == std::string::npos) return false;
  hold_.clear();
  held_ = bytes;
  return true;
}

void FaultProxy::swallow_answer_to(std::string text) {
  const std::lock_guard lock(mutex_);
  swallow_ = std::move(text);
}

void FaultProxy::swallow(Link& link) {
  const std::lock_guard lock(mutex_);
  if (link.swallows) {
    link.dead = link.dead || !link.ways[1].chunks.empty();
    swallowed_ += link.dead ? 1 : 0;
    return;
  }
  for (const auto& chunk : link.ways[0].chunks) {
    if (!swallow_ || chunk.bytes.find(*swallow_) == std::string::npos) continue;
    link.swallows = true;
    swallow_.reset();
  }
}

void FaultProxy::accept_one() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = local(target_port_);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(server);
    close_with_reset(client);
    return;
  }
  no_delay(client);
  no_delay(server);
  links_.push_back(std::make_unique<Link>(client, server));
}

void FaultProxy::drop_all() {
  for (auto& link : links_) {
    for (auto& way : link->ways) {
      const linger at_once{1, 0};
      setsockopt(way.from, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }
  links_.clear();
}

int FaultProxy::step() {
  const std::chrono::milliseconds delay(delay_ms_.load());
  auto next = Clock::now() + std::chrono::seconds(1);
  for (auto& link : links_) {
    if (link->silent) continue;
    for (auto& way : link->ways) {
      link->receive(way, delay);
      swallow(*link);
      if (link->dead) break;
      for (const auto& chunk : way.chunks)
        link->held_back = link->held_back || is_to_be_held(chunk.bytes);
      if (link->held_back) continue;
      link->send_due(way);
      if (!way.chunks.empty()) {
        next = std::min(
            next, std::max(way.chunks.front().due, Clock::now() + std::chrono::milliseconds(1)));
      }
    }
  }
  std::erase_if(links_, [](const auto& link) {
    return link->dead || (link->ways[0].passed && link->ways[1].passed);
  });
  connections_ = static_cast<int>(links_.size());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

void FaultProxy::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (reset_.exchange(false)) drop_all();
    if (silence_.exchange(false)) {
      for (const auto& link : links_) link->silent = true;
    }
    if (let_go_.exchange(false)) {
      for (const auto& link : links_) link->held_back = false;
    }
    int patience = 1000;
    std::vector<pollfd> sockets{{event_, POLLIN, 0}};
    if (!cut_) {
      accept_one();
      patience = step();
      sockets.push_back({listener_, POLLIN, 0});
      for (const auto& link : links_) {
        if (link->silent) continue;
        for (const auto& way : link->ways) {
          if (!way.ended) sockets.push_back({way.from, POLLIN, 0});
        }
      }
    }
    poll(sockets.data(), sockets.size(), patience);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = read(event_, &count, sizeof count);
  }
}

}  // namespace baton::test
