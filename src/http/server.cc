#include "http/server.h"

#include <fcntl.h>

#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include "http/connection.h"

namespace baton::http {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

namespace {

constexpr Millis kAcceptPause{50};  // when there is nothing to accept with, as file descriptors
constexpr Millis kAbortTime{500};

Error cannot_listen(const ServerOptions& options, const error_code& problem) {
  return {.code = Code::unavailable,
          .message = "cannot listen on " + options.address + " port " +
                     std::to_string(options.port) + ": " + problem.message()};
}

// A program that this process starts must not keep the port or a connection.
template <typename AnySocket>
void keep_to_ourselves(AnySocket& socket) {
  fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace

class Server::Impl {
 public:
  Impl(Router router, ServerOptions options, std::shared_ptr<WorkerPool> workers)
      : connections_(std::move(router), std::move(options), std::move(workers)),
        acceptor_(net::make_strand(context_)),
        pause_(acceptor_.get_executor()) {}

  ~Impl() { stop(Millis(0)); }

  Result<void> listen() {
    const ServerOptions& options = connections_.options;
    error_code problem;
    const auto address = net::ip::make_address(options.address, problem);
    if (problem) {
      return Error{.code = Code::bad_request,
                   .message = "'" + options.address + "' is no IP address to listen on"};
    }
    const tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), problem);
    if (!problem) keep_to_ourselves(acceptor_);
    if (!problem) acceptor_.set_option(tcp::acceptor::reuse_address(true), problem);
    if (!problem) acceptor_.bind(endpoint, problem);
    if (!problem) acceptor_.listen(tcp::acceptor::max_listen_connections, problem);
    if (problem) return cannot_listen(options, problem);
    endpoint_ = acceptor_.local_endpoint(problem);
    if (problem) return cannot_listen(options, problem);
    net::post(acceptor_.get_executor(), [this] { accept(); });
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options.io_threads); ++i) {
      threads_.emplace_back([this] { context_.run(); });
    }
    return {};
  }

  void stop(Millis grace) {
    const std::lock_guard lock(stopping_);
    if (stopped_) return;
    stopped_ = true;
    connections_.stopping = true;
    net::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    connections_.drain();
    if (!connections_.wait_until_empty(grace)) {
      connections_.abort();
      connections_.wait_until_empty(kAbortTime);
    }
    context_.stop();
    threads_.clear();
    const std::unique_lock closing(connections_.open_flag->mutex);
    connections_.open_flag->open = false;
  }

  [[nodiscard]] const tcp::endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  [[nodiscard]] std::size_t max_connections() const { return connections_.limits.serve; }

 private:
  void accept() {
    acceptor_.async_accept(net::make_strand(context_),
                           [this](const error_code& problem, Socket socket) {
                             if (connections_.stopping) return;
                             if (problem) return try_again_soon();
                             keep_to_ourselves(socket);
                             accept_connection(std::move(socket), connections_);
                             accept();
                           });
  }

  void try_again_soon() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const error_code&) {
      if (!connections_.stopping) accept();
    });
  }

  Connections connections_;  // outlives the context, whose handlers hold connections
  net::io_context context_;
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  tcp::endpoint endpoint_;
  std::mutex stopping_;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(Router router, ServerOptions options,
                                              std::shared_ptr<WorkerPool> workers) {
  auto impl = std::make_unique<Impl>(std::move(router), std::move(options), std::move(workers));
  if (auto listening = impl->listen(); !listening) return listening.error();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const { return impl_->endpoint().port(); }

std::string Server::url() const {
  const auto address = impl_->endpoint().address();
  const std::string text = address.to_string();
  return "http://" + (address.is_v6() ? "[" + text + "]" : text) + ":" + std::to_string(port());
}

std::size_t Server::connections() const { return impl_->connections(); }
std::size_t Server::max_connections() const { return impl_->max_connections(); }

void Server::stop(Millis grace) { impl_->stop(grace); }

}  // namespace baton::http
