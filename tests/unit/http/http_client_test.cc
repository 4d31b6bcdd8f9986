#include "http_client/http_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_client/base64.h"
#include "support/loopback.h"

namespace baton::http_client {
namespace {

using namespace std::chrono_literals;

Deadline within(Millis span) { return BootClock::now() + span; }

// Answers each connection with a function of (socket, number of the connection), one at a time.
class Server {
 public:
  using Talk = std::function<void(int socket, int connection)>;
  explicit Server(Talk talk) : talk_(std::move(talk)) {
    const test::Listener listener = test::listen_on_loopback();
    listener_ = listener.socket;
    url = "http://127.0.0.1:" + std::to_string(listener.port);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~Server() {
    thread_.request_stop();
    thread_.join();
    if (listener_ >= 0) ::close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Reads one request with its body; empty if the client has gone.
  static std::string request(int socket) {
    std::string text;
    char byte = 0;
    while (!text.ends_with("\r\n\r\n")) {
      if (::recv(socket, &byte, 1, 0) != 1) return {};
      text += byte;
    }
    const auto length = text.find("Content-Length: ");
    std::size_t body = length == std::string::npos ? 0 : std::stoul(text.substr(length + 16));
    for (; body > 0 && ::recv(socket, &byte, 1, 0) == 1; --body) text += byte;
    return text;
  }
  static void say(int socket, const std::string& text) {
    (void)::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
  }
  static void answer(int socket, const std::string& body, const std::string& status = "200 OK") {
    say(socket, "HTTP/1.1 " + status + "\r\nX-Odd:  a value \r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  static std::string chunk(const std::string& text) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    return size + text + "\r\n";
  }
  // Until the client goes.
  static void linger(int socket) {
    char byte = 0;
    while (::recv(socket, &byte, 1, 0) > 0) {
    }
  }
  // From inside a talk, when nobody polls.
  void stop_listening() { ::close(listener_.exchange(-1)); }

  std::string url;
  std::atomic<int> connections = 0;

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested() && listener_ >= 0) {
      pollfd ready{listener_, POLLIN, 0};
      if (::poll(&ready, 1, 20) != 1) continue;
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      talk_(socket, ++connections);
      ::close(socket);
    }
  }

  Talk talk_;
  std::atomic<int> listener_ = -1;
  std::jthread thread_;
};

TEST(Base64, round_trips_and_refuses_what_it_would_not_write) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(to_base64("user:pass"), "dXNlcjpwYXNz");
  for (const char* bad : {"a", "ab=c", "====", "a===", "QQ=", "QR==", "Q Q=", "QQ==QQ=="}) {
    EXPECT_FALSE(from_base64(bad)) << bad;
  }
}

TEST(HttpClient, sends_what_it_is_told_and_keeps_its_connection) {
  std::vector<std::string> requests;
  Server server([&](int socket, int) {
    for (int i = 0; i < 3; ++i) {
      requests.push_back(Server::request(socket));
      Server::answer(socket, "hello", i == 1 ? "404 Not Found" : "200 OK");
    }
  });
  HttpClient client;
  const auto first = client.send({.method = "POST",
                                  .url = server.url + "/v3/kv",
                                  .headers = {{"Authorization", bearer_auth("token")}},
                                  .body = "{}"},
                                 within(10s));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "hello");
  EXPECT_EQ(first->header("x-odd"), "a value");
  const auto second = client.send({.method = "DELETE", .url = server.url + "/x"}, within(10s));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->status, 404);
  EXPECT_FALSE(second->ok());
  ASSERT_TRUE(client.send({.url = server.url}, within(10s)));
  EXPECT_EQ(server.connections, 1);
  EXPECT_TRUE(requests[0].starts_with("POST /v3/kv HTTP/1.1\r\n")) << requests[0];
  EXPECT_NE(requests[0].find("Authorization: Bearer token\r\n"), std::string::npos);
  EXPECT_EQ(requests[0].find("Expect"), std::string::npos);
  EXPECT_TRUE(requests[0].ends_with("{}"));
  EXPECT_TRUE(requests[1].starts_with("DELETE /x "));
  EXPECT_TRUE(requests[2].starts_with("GET / "));
}

TEST(HttpClient, a_request_that_was_not_sent_is_not_in_doubt) {
  const std::string url = Server([](int, int) {}).url;  // nobody listens there any more
  HttpClient client;
  const auto refused = client.send({.url = url}, within(10s));
  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.error().in_doubt);
  EXPECT_TRUE(refused.error().retryable);
  const auto nowhere = client.send({.url = "http://no-such-host.invalid"}, within(10s));
  ASSERT_FALSE(nowhere);
  EXPECT_FALSE(nowhere.error().in_doubt);
  EXPECT_FALSE(client.send({.url = url}, within(-1ms)));
}

TEST(HttpClient, a_request_whose_answer_did_not_come_is_in_doubt) {
  Server server([](int socket, int) {
    Server::request(socket);
    Server::linger(socket);
  });
  HttpClient client;
  const auto begin = BootClock::now();
  const auto late = client.send({.method = "POST", .url = server.url, .body = "x"}, within(100ms));
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().in_doubt);
  EXPECT_LT(BootClock::now() - begin, 5s);

  Server cut([](int socket, int) { Server::request(socket); });
  const auto gone = client.send({.method = "POST", .url = cut.url, .body = "x"}, within(10s));
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().in_doubt);
}

// A kept connection may swallow a request and close; what follows must not make that unsent.
TEST(HttpClient, a_request_swallowed_by_a_kept_connection_is_in_doubt) {
  Server* self = nullptr;
  std::atomic<bool> ready = false;
  Server server([&](int socket, int) {
    while (!ready) std::this_thread::yield();
    Server::request(socket);
    Server::answer(socket, "hello");
    Server::request(socket);
    self->stop_listening();
  });
  self = &server;
  ready = true;
  HttpClient client;
  ASSERT_TRUE(client.send({.url = server.url}, within(10s)));
  const auto gone = client.send({.method = "POST", .url = server.url, .body = "x"}, within(10s));
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().in_doubt) << gone.error().message;
}

TEST(HttpClient, what_must_not_happen_twice_is_sent_once) {
  for (const bool once : {false, true}) {
    std::atomic<int> requests = 0;
    Server server([&](int socket, int connection) {
      if (Server::request(socket).empty()) return;
      ++requests;
      Server::answer(socket, "hello");
      if (connection == 1 && !Server::request(socket).empty()) ++requests;  // and hangs up
    });
    {
      HttpClient client;
      const HttpRequest post{
          .method = "POST", .url = server.url, .headers = {}, .body = "{}", .once = once};
      ASSERT_TRUE(client.send(post, within(10s)));
      const auto second = client.send(post, within(10s));
      EXPECT_EQ(second.has_value(), !once);
      if (!second) {
        EXPECT_TRUE(second.error().in_doubt) << second.error().message;
        EXPECT_TRUE(second.error().retryable) << second.error().message;
        ASSERT_TRUE(client.send(post, within(10s))) << "the next one needs another connection";
      }
    }
    EXPECT_EQ(requests, 3) << once;
  }
}

TEST(HttpClient, an_answer_above_the_limit_is_refused) {
  Server server([](int socket, int) {
    Server::request(socket);
    Server::answer(socket, std::string(100'000, 'x'));
    Server::linger(socket);
  });
  HttpClient client({.max_response = 10'000});
  const auto answer = client.send({.url = server.url}, within(10s));
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().retryable);
  EXPECT_TRUE(answer.error().in_doubt);
}

TEST(HttpClient, redirects_are_not_followed) {
  Server server([](int socket, int) {
    Server::request(socket);
    Server::say(socket,
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                "Content-Length: 0\r\n\r\n");
  });
  HttpClient client;
  const auto answer = client.send({.url = server.url}, within(10s));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 302);
}

TEST(HttpClient, a_header_cannot_smuggle_another_and_no_error_shows_a_secret) {
  HttpClient client;
  const auto answer = client.send(
      {.url = "http://127.0.0.1:1/", .headers = {{"Authorization", bearer_auth("secret\r\nX: y")}}},
      within(1s));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::bad_request);
  EXPECT_EQ(answer.error().message.find("secret"), std::string::npos);
  for (const char* url : {"file:///etc/passwd", "http://user:secret@host/", "http://a\n/", "x"}) {
    const auto refused = client.send({.url = url}, within(1s));
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  }
}

TEST(HttpClient, a_stream_is_given_line_by_line_until_somebody_ends_it) {
  Server server([](int socket, int connection) {
    Server::request(socket);
    Server::say(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    Server::say(socket, Server::chunk("one\ntw"));
    Server::say(socket, Server::chunk("o\r\n\nfour\n"));
    if (connection == 1) {
      Server::say(socket, Server::chunk(""));
    } else {
      Server::linger(socket);
    }
  });
  HttpClient client;
  std::vector<std::string> lines;
  const auto collect = [&](std::string_view line) { return lines.emplace_back(line), true; };

  const auto ended = client.stream({.url = server.url}, collect, {});
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "four"}));

  std::stop_source stop;
  lines.clear();
  const auto cancelled = client.stream(
      {.url = server.url},
      [&](std::string_view line) {
        if (line == "four") stop.request_stop();
        return collect(line);
      },
      stop.get_token());
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(lines.size(), 4U);

  const auto enough =
      client.stream({.url = server.url}, [&](std::string_view line) { return line != "one"; }, {});
  EXPECT_TRUE(enough) << enough.error().message;

  const auto silent = client.stream({.url = server.url}, collect, {}, 50ms);
  ASSERT_FALSE(silent);
  EXPECT_TRUE(silent.error().retryable);
}

TEST(HttpClient, a_stream_is_cancelled_from_another_thread) {
  std::atomic<bool> connected = false;
  Server server([&](int socket, int) {
    Server::request(socket);
    Server::say(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    connected = true;
    Server::linger(socket);
  });
  HttpClient client;
  std::jthread stream([&](const std::stop_token& stop) {
    EXPECT_TRUE(client.stream(
        {.url = server.url}, [](std::string_view) { return true; }, stop));
  });
  while (!connected) std::this_thread::yield();
  stream.request_stop();
  stream.join();
}

TEST(HttpClient, a_refused_stream_gives_its_answer_and_a_long_line_is_refused) {
  Server server([](int socket, int connection) {
    Server::request(socket);
    Server::answer(socket, std::string(1000, 'x'), connection == 1 ? "410 Gone" : "200 OK");
  });
  HttpClient client({.max_line = 500});
  const auto never = [](std::string_view) { return ADD_FAILURE(), true; };
  const auto gone = client.stream({.url = server.url}, never, {});
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(gone->status, 410);
  EXPECT_EQ(gone->body.size(), 1000U);
  EXPECT_FALSE(client.stream({.url = server.url}, never, {}));
}

TEST(HttpClient, a_stream_may_be_longer_than_the_limit_but_not_its_headers) {
  Server server([](int socket, int connection) {
    Server::request(socket);
    std::string headers;
    for (int i = 0; i < (connection == 1 ? 1 : 100); ++i) {
      headers += "X-" + std::to_string(i) + ": " + std::string(100, 'x') + "\r\n";
    }
    std::string lines;
    for (int i = 0; i < 100; ++i) lines += std::string(100, 'y') + "\n";
    Server::say(socket, "HTTP/1.1 200 OK\r\n" + headers +
                            "Content-Length: " + std::to_string(lines.size()) + "\r\n\r\n" + lines);
    Server::linger(socket);
  });
  HttpClient client({.max_response = 5000});
  const auto any = [](std::string_view) { return true; };
  EXPECT_TRUE(client.stream({.url = server.url}, any, {}));
  const auto refused = client.stream({.url = server.url}, any, {});
  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.error().retryable);
}

}  // namespace
}  // namespace baton::http_client
