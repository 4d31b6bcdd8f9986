#pragma once

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

namespace baton::test {

struct Listener {
  int socket = -1;  // the caller closes it
  int port = 0;
};

// On a free port of 127.0.0.1.
inline Listener listen_on_loopback() {
  Listener made{.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(made.socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(made.socket, 8), 0);
  ::getsockname(made.socket, reinterpret_cast<sockaddr*>(&address), &size);
  made.port = ntohs(address.sin_port);
  return made;
}

}  // namespace baton::test
