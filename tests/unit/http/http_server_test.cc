// What the server does, and how it ends.

#include <atomic>
#include <future>
#include <list>
#include <thread>

#include "unit/http/http_fixture.h"

namespace baton::http {
namespace {

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

TEST_F(HttpServer, where_a_request_ends_is_said_in_one_way_or_it_is_refused) {
  start();
  const auto with = [](const std::string& headers, const std::string& body = "0\r\n\r\n") {
    return "POST /echo HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body;
  };
  for (const char* headers :
       {"Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n", "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding:\r\n", "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n", "Content-Length: 0x5\r\n", "Content-Length:\r\n"}) {
    EXPECT_EQ(refused(with(headers)).status, 400) << headers;
  }
  EXPECT_EQ(refused("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status,
            400)
      << "HTTP/1.0 has no chunks";
  HttpClient client = connect();
  client.send(with("Transfer-Encoding:  ChunKed \r\n", "3\r\nabc\r\n0\r\n\r\n"));
  EXPECT_EQ(client.read().value().body, "abc");
  client.send(with("Content-Length: 2\r\n", "de"));
  EXPECT_EQ(client.read().value().body, "de");
}

TEST_F(HttpServer, what_the_owner_refuses_reaches_no_handler) {
  options_.refuse = [](const Request& request) -> std::optional<Response> {
    if (request.header("x-pass") == "yes") return std::nullopt;
    return error_response(401, "unauthorized", "say X-Pass: yes");
  };
  start();
  EXPECT_EQ(call({"GET", "/hello/you"}).status, 401);
  HttpClient client = connect();
  client.send("GET /hello/you HTTP/1.1\r\nHost: a\r\nX-Pass: yes\r\n\r\n");
  EXPECT_EQ(client.read().value().status, 200);
}

TEST_F(HttpServer, what_it_answers_by_itself_has_the_form_that_its_owner_wants) {
  options_.refusal = [](int status, std::string_view code, std::string_view) {
    return Response{.status = status, .body = std::string(code), .content_type = "text/x-own"};
  };
  options_.max_body_bytes = 10;
  router_.add("GET", "/throw", [](const Request&) -> Response { throw std::bad_alloc(); });
  start();
  const auto expect = [](const test::HttpAnswer& answer, int status, const char* code) {
    EXPECT_EQ(answer.status, status) << code;
    EXPECT_EQ(answer.body, code);
    EXPECT_EQ(answer.headers.at("content-type"), "text/x-own");
  };
  expect(call({"GET", "/nowhere"}), 404, "not_found");
  expect(call({"DELETE", "/echo"}), 405, "method_not_allowed");
  expect(call({"POST", "/echo", std::string(11, 'x')}), 413, "body_too_large");
  expect(call({"GET", "/%zz"}), 400, "bad_request");
  expect(call({"GET", "/throw"}), 500, "internal");
  expect(refused("nonsense\r\n\r\n"), 400, "bad_request");
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

// Its name may be made to mean this machine once the browser has loaded it: then it is of the same
// origin as what it calls.
TEST_F(HttpServer, on_loopback_a_page_of_another_name_cannot_write_either) {
  start();
  const auto from_page_of = [&](const std::string& host) {
    HttpClient client = connect();
    client.send("POST /echo HTTP/1.1\r\nHost: " + host + "\r\nOrigin: http://" + host +
                "\r\nContent-Length: 1\r\n\r\nx");
    return client.read().value_or(test::HttpAnswer{}).status;
  };
  for (const char* host :
       {"localhost", "localhost:8080", "127.0.0.1:8080", "127.1.2.3", "[::1]", "[::1]:8080"}) {
    EXPECT_EQ(from_page_of(host), 200) << host;
  }
  for (const char* host : {"evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example",
                           "128.0.0.1:8080", "[::2]:8080", "[::1", "::1"}) {
    EXPECT_EQ(from_page_of(host), 403) << host;
  }
}

TEST_F(HttpServer, elsewhere_a_page_may_have_any_name) {
  options_.address = "0.0.0.0";
  start();
  HttpClient client = connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: gateway.example\r\nOrigin: http://gateway.example\r\n"
      "Content-Length: 1\r\n\r\nx");
  EXPECT_EQ(client.read().value_or(test::HttpAnswer{}).status, 200);
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
