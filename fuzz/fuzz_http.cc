// The bytes of one connection to the HTTP server, over a socket pair.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include "fuzz.h"
#include "http/connection.h"

namespace baton::fuzz {
namespace {

constexpr std::size_t kMaxBody = 4096;
constexpr std::size_t kMaxRequests = 8;

http::Response answer(const http::Request& request) {
  promise(request.body.size() <= kMaxBody, "a body is within its limit");
  const auto coding = request.header("transfer-encoding");
  promise(coding.empty() || request.header("content-length").empty(), "a body has one length");
  return {.body = request.body};
}

http::Connections all_connections() {
  http::Router router;
  for (const char* method : {"GET", "POST"}) {
    router.add(method, "/a", answer, http::Router::Run::at_once);
    router.add(method, "/a/{b}", answer, http::Router::Run::at_once);
  }
  return {std::move(router),
          {.max_header_bytes = 4096,
           .max_body_bytes = kMaxBody,
           .max_requests_per_connection = kMaxRequests},
          std::make_shared<http::WorkerPool>(1)};
}

}  // namespace
}  // namespace baton::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  static http::Connections all = fuzz::all_connections();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  boost::asio::io_context context(1);
  http::Socket socket(boost::asio::make_strand(context));
  socket.assign(boost::asio::ip::tcp::v4(), ends[0]);
  // Within what the pair holds, so that neither end waits for the other.
  size = std::min<std::size_t>(size, 64U << 10U);
  fuzz::promise(::send(ends[1], data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size),
                "the pair holds it");
  ::shutdown(ends[1], SHUT_WR);
  http::accept_connection(std::move(socket), all);
  context.run();
  fuzz::promise(all.size() == 0, "the connection has ended");
  std::string heard;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
    heard.append(bytes, static_cast<std::size_t>(got));
  }
  ::close(ends[1]);
  fuzz::promise(heard.empty() || heard.starts_with("HTTP/1."), "what is answered is HTTP");
  return 0;
}
