#include "broker/rabbitmq/socket.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/common/wait_for.h"

namespace baton::broker::rabbitmq {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};

Error unavailable(const Settings& settings, const std::string& why) {
  return {.code = Code::unavailable, .message = settings.location + ": " + why, .retryable = true};
}

void tune(int socket) {
  const auto set = [&](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// Connected, or -1 and errno.
int connect_to(const addrinfo& address, Deadline by) {
  const int socket = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                              address.ai_protocol);
  if (socket < 0) return -1;
  int problem = 0;
  if (::connect(socket, address.ai_addr, address.ai_addrlen) != 0) {
    problem = errno;
    if (problem == EINPROGRESS) {
      problem = ETIMEDOUT;
      socklen_t size = sizeof problem;
      if (store::wait_for(socket, POLLOUT, by)) {
        (void)::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size);
      }
    }
  }
  if (problem == 0) return socket;
  ::close(socket);
  errno = problem;
  return -1;
}

}  // namespace

Result<std::unique_ptr<Socket>> Socket::open(const Settings& settings, Deadline by) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown =
      ::getaddrinfo(settings.host.c_str(), std::to_string(settings.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  if (unknown != 0) return unavailable(settings, ::gai_strerror(unknown));
  int socket = -1;
  for (const addrinfo* address = found; address != nullptr && socket < 0;
       address = address->ai_next) {
    // Those that do not answer must leave time for the next.
    const auto left = by - BootClock::now();
    socket = connect_to(*address, address->ai_next == nullptr ? by : by - left / 2);
  }
  if (socket < 0) return unavailable(settings, std::strerror(errno));
  std::unique_ptr<Socket> opened(new Socket(socket));
  tune(socket);
  if (settings.uses_tls) {
    auto tls = Tls::handshake(socket, settings.tls, settings.host, by);
    if (!tls) return tls.error();
    opened->tls_ = std::move(*tls);
  }
  return opened;
}

Socket::~Socket() {
  tls_.reset();
  ::close(socket_);
}

ssize_t Socket::result_of(ssize_t done) {
  if (done > 0) return done;
  if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  problem_ = tls_ && !tls_->problem().empty()   ? tls_->problem()
             : done == 0 || errno == ECONNRESET ? "the server has hung up"
                                                : std::strerror(errno);
  // With TLS 1.3 a client learns only now that its handshake was not good enough.
  if (tls_ && tls_->wants_certificate()) {
    problem_ += "; the server wants a client's certificate: give cert= and key=";
  }
  return -1;
}

ssize_t Socket::send(std::string_view bytes) {
  if (bytes.empty()) return 0;
  return result_of(tls_ ? tls_->write(bytes.data(), bytes.size())
                        : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

ssize_t Socket::receive(char* bytes, std::size_t size) {
  return result_of(tls_ ? tls_->read(bytes, size) : ::recv(socket_, bytes, size, MSG_DONTWAIT));
}

bool Socket::wait(bool also_to_send, Deadline by) const {
  return store::wait_for(socket_, also_to_send ? POLLIN | POLLOUT : POLLIN, by);
}

bool Socket::wait_to_send(Deadline by) const { return store::wait_for(socket_, POLLOUT, by); }

}  // namespace baton::broker::rabbitmq
