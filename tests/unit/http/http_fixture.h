#pragma once

// A server on real sockets with a few routes. Timeouts are short where a test waits for one to
// pass, and long everywhere else.

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "http/server.h"
#include "support/http_client.h"

namespace baton::http {

using namespace std::chrono_literals;
using test::HttpClient;
using test::poll_until;
using test::request_text;

class HttpServer : public ::testing::Test {
 protected:
  ~HttpServer() override {
    if (workers_) workers_->stop();
  }

  void start(std::size_t threads = 2, std::size_t max_queued = 1024) {
    router_.add("GET", "/hello/{who}", [](const Request& request) {
      return Response{.body = "hello " + std::string(request.parameter("who"))};
    });
    router_.add("POST", "/echo", [](const Request& request) {
      return Response{.body = request.body, .content_type = "text/plain"};
    });
    router_.add_async("GET", "/later", [this](const Request&, Reply reply) {
      const std::lock_guard lock(mutex_);
      later_.push_back(std::move(reply));
    });
    workers_ = std::make_shared<WorkerPool>(threads, max_queued);
    auto server = Server::start(router_, options_, workers_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  [[nodiscard]] int port() const { return server_->port(); }
  HttpClient connect() const { return HttpClient(port()); }

  test::HttpAnswer call(const test::HttpCall& what) const {
    auto answer = test::http(port(), what);
    EXPECT_TRUE(answer) << what.method << " " << what.path;
    return answer.value_or(test::HttpAnswer{});
  }

  // What a connection that sends `bytes` and waits is told; the connection must end then.
  test::HttpAnswer refused(const std::string& bytes) const {
    HttpClient client = connect();
    client.send(bytes);
    auto answer = client.read();
    EXPECT_TRUE(answer) << bytes.substr(0, 80);
    EXPECT_TRUE(client.ended());
    return answer.value_or(test::HttpAnswer{});
  }

  std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return later_.size();
  }
  void answer_all() {
    const std::lock_guard lock(mutex_);
    for (const Reply& reply : later_) reply({.body = "at last"});
    later_.clear();
  }

  Router router_;
  ServerOptions options_;
  std::shared_ptr<WorkerPool> workers_;
  std::mutex mutex_;
  std::list<Reply> later_;
  std::unique_ptr<Server> server_;  // goes first
};

}  // namespace baton::http
