// The server on real sockets. Timeouts are short where a test waits for one to pass, and long
// everywhere else.

#include "http/server.h"

#include <atomic>
#include <future>
#include <list>
#include <thread>

#include <gtest/gtest.h>

#include "support/http_client.h"

namespace baton::http {
namespace {

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

TEST_F(HttpServer, answers_and_says_where_it_listens) {
  start();
  EXPECT_EQ(server_->url(), "http://127.0.0.1:" + std::to_string(port()));
  const auto answer = call({"GET", "/hello/w%C3%B6rld?x=y"});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "hello wörld");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
}

TEST_F(HttpServer, head_gives_the_header_of_get) {
  start();
  HttpClient client = connect();
  client.send(request_text({"HEAD", "/hello/you"}, false));
  const auto head = client.read(true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->headers.at("content-length"), "9");
  client.send(request_text({"GET", "/hello/you"}, false));
  EXPECT_EQ(client.read().value().body, "hello you") << "no body was sent before";
}

TEST_F(HttpServer, says_what_is_wrong_as_json) {
  start();
  const auto missing = call({"GET", "/nowhere"});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body,
            "{\"error\":{\"code\":\"not_found\",\"message\":\"there is no such path\"}}\n");
  const auto method = call({"DELETE", "/hello/you"});
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(call({"GET", "/%zz"}).status, 400);
}

TEST_F(HttpServer, what_is_no_http_ends_the_connection) {
  start();
  EXPECT_EQ(refused("nonsense\r\n\r\n").status, 400);
  EXPECT_EQ(refused("GET / HTTP/9.9\r\nHost: x\r\n\r\n").status, 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n").status, 400) << "no Host";
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").status, 400);
  EXPECT_EQ(refused("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
                .status,
            400)
      << "two lengths are how requests are smuggled past a proxy";
  EXPECT_EQ(refused("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n"
                    "Content-Length: 1\r\n\r\n")
                .status,
            417);
}

TEST_F(HttpServer, a_connection_is_used_again_up_to_its_count) {
  options_.max_requests_per_connection = 3;
  start();
  HttpClient client = connect();
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(client.send(request_text({"POST", "/echo", "n" + std::to_string(i)}, false)));
    const auto answer = client.read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "n" + std::to_string(i));
  }
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServer, pipelined_requests_are_answered_in_order) {
  start();
  HttpClient client = connect();
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += request_text({"POST", "/echo", "number " + std::to_string(i)}, false);
  }
  client.send(all);
  for (int i = 0; i < 20; ++i) {
    const auto answer = client.read();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->body, "number " + std::to_string(i));
  }
}

TEST_F(HttpServer, a_half_closed_connection_still_gets_its_answer) {
  start();
  HttpClient client = connect();
  client.send(request_text({"GET", "/later"}, false));
  client.half_close();
  ASSERT_TRUE(poll_until([&] { return waiting() == 1; }));
  answer_all();
  EXPECT_EQ(client.read().value().body, "at last");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServer, half_a_request_is_a_bad_one) {
  start();
  HttpClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
  client.half_close();
  EXPECT_EQ(client.read().value().status, 400);
}

TEST_F(HttpServer, huge_headers_are_431_whether_they_come_at_once_or_bit_by_bit) {
  options_.max_header_bytes = 4096;
  start();
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(1 << 20, 'x')).status, 431);
  EXPECT_EQ(refused("GET /" + std::string(5000, 'x')).status, 431);
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 1000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(refused(many).status, 431);
}

TEST_F(HttpServer, huge_bodies_are_413_announced_or_not) {
  options_.max_body_bytes = 1000;
  start();
  EXPECT_EQ(call({"POST", "/echo", std::string(1000, 'x')}).status, 200) << "the limit itself";
  EXPECT_EQ(refused(request_text({"POST", "/echo", std::string(1001, 'x')}, false)).status, 413);
  EXPECT_EQ(refused(request_text({"POST", "/echo", std::string(4 << 20, 'x')}, false)).status, 413);
  EXPECT_EQ(refused("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "7d0\r\n" +
                    std::string(2000, 'x') + "\r\n0\r\n\r\n")
                .status,
            413);
}

TEST_F(HttpServer, asks_for_the_body_of_who_waits_for_that) {
  start();
  HttpClient client = connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
      "Content-Length: 4\r\n\r\n");
  EXPECT_EQ(client.read(true).value().status, 100);
  client.send("body");
  EXPECT_EQ(client.read().value().body, "body");
}

TEST_F(HttpServer, slow_headers_and_bodies_are_408) {
  options_.header_timeout = 300ms;
  options_.body_timeout = 300ms;
  start();
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: x").status, 408);
  EXPECT_EQ(refused("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab").status, 408);
}

TEST_F(HttpServer, a_drip_of_bytes_does_not_extend_the_time) {
  options_.header_timeout = 300ms;
  start();
  HttpClient client = connect();
  std::atomic<bool> done{false};
  std::jthread drip([&] {
    client.send("GET / HTTP/1.1\r\n");
    while (!done && client.send("X: y\r\n")) std::this_thread::sleep_for(20ms);
  });
  EXPECT_EQ(client.read().value().status, 408);
  done = true;
}

TEST_F(HttpServer, idle_connections_are_closed_without_a_word) {
  options_.header_timeout = 200ms;
  options_.idle_timeout = 200ms;
  start();
  HttpClient silent = connect();
  EXPECT_FALSE(silent.read());
  EXPECT_TRUE(silent.ended());
  HttpClient client = connect();
  client.send(request_text({"GET", "/hello/you"}, false));
  EXPECT_TRUE(client.read());
  EXPECT_FALSE(client.read());
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServer, a_client_that_does_not_read_is_dropped) {
  options_.write_timeout = 300ms;
  router_.add("GET", "/much",
              [](const Request&) { return Response{.body = std::string(64 << 20, 'x')}; });
  start();
  HttpClient client = connect();
  client.send(request_text({"GET", "/much"}, false));
  EXPECT_TRUE(poll_until([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(poll_until([&] { return server_->connections() == 0; }));
}

TEST_F(HttpServer, a_handler_that_takes_too_long_is_503_and_its_answer_is_lost) {
  options_.answer_timeout = 200ms;
  start();
  EXPECT_EQ(call({"GET", "/later"}).status, 503);
  answer_all();
  EXPECT_EQ(call({"GET", "/hello/you"}).status, 200);
}

TEST_F(HttpServer, a_handler_that_throws_or_forgets_to_answer_is_500) {
  router_.add("GET", "/throws",
              [](const Request&) -> Response { throw std::runtime_error("secret"); });
  router_.add(
      "GET", "/throws-at-once",
      [](const Request&) -> Response { throw std::runtime_error("secret"); }, Router::Run::at_once);
  router_.add_async("GET", "/forgets", [](const Request&, const Reply&) {});
  start();
  for (const std::string path : {"/throws", "/throws-at-once", "/forgets"}) {
    const auto answer = call({"GET", path});
    EXPECT_EQ(answer.status, 500) << path;
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  }
}

TEST_F(HttpServer, connections_above_the_limit_are_told_so) {
  options_.max_connections = 8;
  start();
  std::list<HttpClient> held;
  for (int i = 0; i < 8; ++i) {
    held.push_back(connect());
    held.back().send(request_text({"POST", "/echo", "x"}, false));
    ASSERT_TRUE(held.back().read());
  }
  for (int i = 0; i < 40; ++i) {
    HttpClient excess = connect();
    const auto answer = excess.read();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(answer->headers.at("retry-after"), "1");
    EXPECT_TRUE(excess.ended());
  }
  held.front().send(request_text({"POST", "/echo", "still here"}, false));
  EXPECT_EQ(held.front().read().value().body, "still here");
  held.clear();
  EXPECT_TRUE(poll_until([&] {
    const auto answer = test::http(port(), {"GET", "/hello/you"});
    return answer && answer->status == 200;
  }));
}

TEST_F(HttpServer, a_flood_of_connections_does_not_stop_it) {
  options_.max_connections = 4;
  start();
  for (int round = 0; round < 5; ++round) {
    std::list<HttpClient> flood;
    for (int i = 0; i < 200; ++i) flood.push_back(connect());
  }
  EXPECT_TRUE(poll_until([&] {
    const auto answer = test::http(port(), {"GET", "/hello/you"});
    return answer && answer->status == 200;
  }));
}

TEST_F(HttpServer, requests_beyond_what_may_wait_are_503) {
  std::promise<void> go;
  const auto may_go = go.get_future().share();
  std::atomic<int> entered{0};
  router_.add("GET", "/block", [&](const Request&) {
    ++entered;
    may_go.wait();
    return Response{};
  });
  start(1, 2);
  std::list<HttpClient> clients;
  const auto ask = [&] {
    clients.push_back(connect());
    clients.back().send(request_text({"GET", "/block"}));
  };
  ask();
  ASSERT_TRUE(poll_until([&] { return entered == 1; }));
  ask();
  ask();
  ASSERT_TRUE(poll_until([&] { return workers_->queued() == 2; }));
  EXPECT_EQ(call({"GET", "/block"}).status, 503);
  go.set_value();
  for (auto& client : clients) EXPECT_EQ(client.read().value().status, 200);
}

TEST_F(HttpServer, many_requests_wait_without_a_thread_each) {
  start(1);
  std::list<HttpClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(connect());
    clients.back().send(request_text({"GET", "/later"}));
  }
  ASSERT_TRUE(poll_until([&] { return waiting() == 200; }));
  EXPECT_EQ(call({"GET", "/hello/you"}).status, 200) << "the one worker is free meanwhile";
  answer_all();
  for (auto& client : clients) EXPECT_EQ(client.read().value().body, "at last");
}

TEST_F(HttpServer, stopping_lets_requests_finish_and_closes_idle_connections) {
  start();
  HttpClient idle = connect();
  idle.send(request_text({"GET", "/hello/you"}, false));
  ASSERT_TRUE(idle.read());
  HttpClient busy = connect();
  busy.send(request_text({"GET", "/later"}, false));
  ASSERT_TRUE(poll_until([&] { return waiting() == 1; }));
  auto stopping = std::async(std::launch::async, [&] { server_->stop(30s); });
  EXPECT_TRUE(idle.ended());
  EXPECT_TRUE(poll_until([&] {
    return !test::http(port(), {"GET", "/hello/you"});
  })) << "it accepts no more";
  answer_all();
  const auto answer = busy.read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "at last");
  EXPECT_EQ(answer->headers.at("connection"), "close");
  busy.half_close();
  stopping.get();
}

TEST_F(HttpServer, stopping_ends_at_its_deadline) {
  start();
  HttpClient stuck = connect();
  stuck.send(request_text({"GET", "/later"}));
  ASSERT_TRUE(poll_until([&] { return waiting() == 1; }));
  server_->stop(50ms);
  EXPECT_FALSE(stuck.read());
  answer_all();  // into the void
  server_.reset();
  later_.clear();
}

TEST_F(HttpServer, stopping_under_load_loses_no_request_it_has_taken) {
  std::atomic<int> begun{0};
  std::atomic<int> answered{0};
  router_.add("GET", "/count", [&](const Request&) {
    ++begun;
    return Response{};
  });
  start();
  std::vector<std::jthread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const auto answer = test::http(port(), {"GET", "/count"});
        if (answer && answer->status == 200) ++answered;
        if (!answer) return;
      }
    });
  }
  ASSERT_TRUE(poll_until([&] { return answered > 200; }));
  server_->stop(30s);
  clients.clear();
  EXPECT_EQ(begun, answered);
}

TEST_F(HttpServer, tells_of_each_answer) {
  std::mutex mutex;
  std::vector<Served> seen;
  options_.on_served = [&](const Served& served) {
    const std::lock_guard lock(mutex);
    seen.push_back(served);
  };
  start();
  call({"GET", "/hello/you"});
  call({"GET", "/nowhere"});
  server_->stop(30s);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].route, "/hello/{who}");
  EXPECT_EQ(seen[0].status, 200);
  EXPECT_TRUE(seen[0].peer.starts_with("127.0.0.1:"));
  EXPECT_EQ(seen[1].route, "");
  EXPECT_EQ(seen[1].status, 404);
}

TEST_F(HttpServer, a_taken_port_and_a_wrong_address_are_errors_in_words) {
  start();
  auto second = Server::start({}, {.port = server_->port()}, workers_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(port())), std::string::npos);
  auto wrong = Server::start({}, {.address = "nowhere"}, workers_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::bad_request);
}

TEST_F(HttpServer, a_page_of_another_origin_cannot_make_a_browser_write) {
  start();
  const auto with_origin = [&](const std::string& origin) {
    HttpClient client = connect();
    client.send("POST /echo HTTP/1.1\r\nHost: localhost:80\r\nOrigin: " + origin +
                "\r\nContent-Length: 1\r\n\r\nx");
    return client.read().value_or(test::HttpAnswer{}).status;
  };
  EXPECT_EQ(with_origin("http://evil.example"), 403);
  EXPECT_EQ(with_origin("null"), 403);
  EXPECT_EQ(with_origin("http://localhost:80"), 200) << "our own page";
}

TEST_F(HttpServer, a_header_value_cannot_smuggle_in_another_header) {
  router_.add("GET", "/evil", [](const Request&) {
    return Response{.headers = {{"X-Name", "a\r\nSet-Cookie: b"}}};
  });
  start();
  const auto answer = call({"GET", "/evil"});
  EXPECT_FALSE(answer.headers.contains("set-cookie"));
}

}  // namespace
}  // namespace baton::http
