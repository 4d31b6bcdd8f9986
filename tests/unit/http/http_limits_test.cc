// Clients that send too much, too slowly or too often.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <list>
#include <thread>

#include "unit/http/http_fixture.h"

namespace baton::http {
namespace {

using HttpLimits = HttpServer;

TEST_F(HttpLimits, a_connection_is_used_again_up_to_its_count) {
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

TEST_F(HttpLimits, huge_headers_are_431_whether_they_come_at_once_or_bit_by_bit) {
  options_.max_header_bytes = 4096;
  start();
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(1 << 20, 'x')).status, 431);
  EXPECT_EQ(refused("GET /" + std::string(5000, 'x')).status, 431);
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 1000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(refused(many).status, 431);
}

TEST_F(HttpLimits, huge_bodies_are_413_announced_or_not) {
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

TEST_F(HttpLimits, slow_headers_and_bodies_are_408) {
  options_.header_timeout = 300ms;
  options_.body_timeout = 300ms;
  start();
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: x").status, 408);
  EXPECT_EQ(refused("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab").status, 408);
}

TEST_F(HttpLimits, a_drip_of_bytes_does_not_extend_the_time) {
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

TEST_F(HttpLimits, idle_connections_are_closed_without_a_word) {
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

TEST_F(HttpLimits, a_client_that_does_not_read_is_dropped) {
  options_.write_timeout = 300ms;
  router_.add("GET", "/much",
              [](const Request&) { return Response{.body = std::string(64 << 20, 'x')}; });
  start();
  HttpClient client = connect();
  client.send(request_text({"GET", "/much"}, false));
  EXPECT_TRUE(poll_until([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(poll_until([&] { return server_->connections() == 0; }));
}

TEST_F(HttpLimits, a_handler_that_takes_too_long_is_503_and_its_answer_is_lost) {
  options_.answer_timeout = 200ms;
  start();
  EXPECT_EQ(call({"GET", "/later"}).status, 503);
  answer_all();
  EXPECT_EQ(call({"GET", "/hello/you"}).status, 200);
}

TEST_F(HttpLimits, connections_above_the_limit_are_told_so) {
  options_.max_connections = 8;
  start();
  std::list<HttpClient> held;
  for (int i = 0; i < 8; ++i) {
    held.push_back(connect());
    held.back().send(request_text({"GET", "/later"}, false));
  }
  ASSERT_TRUE(poll_until([&] { return waiting() == 8; }));
  for (int i = 0; i < 40; ++i) {
    HttpClient excess = connect();
    excess.send(request_text({"GET", "/hello/you"}, false));
    const auto answer = excess.read();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(answer->headers.at("retry-after"), "1");
    EXPECT_TRUE(excess.ended());
  }
  answer_all();
  EXPECT_EQ(held.front().read().value().body, "at last");
  held.clear();
  EXPECT_TRUE(poll_until([&] {
    const auto answer = test::http(port(), {"GET", "/hello/you"});
    return answer && answer->status == 200;
  }));
}

TEST_F(HttpLimits, what_is_answered_at_once_is_answered_above_the_limit) {
  options_.max_connections = 4;
  router_.add(
      "GET", "/healthz", [](const Request&) { return Response{}; }, Router::Run::at_once);
  start();
  std::list<HttpClient> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(connect());
    busy.back().send(request_text({"GET", "/later"}, false));
  }
  ASSERT_TRUE(poll_until([&] { return waiting() == 4; }));
  for (int i = 0; i < 20; ++i) {
    const auto answer = call({"GET", "/healthz"});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("connection"), "close");
  }
  answer_all();
}

TEST_F(HttpLimits, the_connection_that_is_idle_for_longest_makes_room_for_a_new_one) {
  options_.max_connections = 3;
  options_.io_threads = 1;  // an answered connection is idle before the next one is accepted
  start();
  const auto ask = [&](HttpClient& client) {
    client.send(request_text({"POST", "/echo", "x"}, false));
    const auto answer = client.read();
    return answer ? answer->status : 0;
  };
  HttpClient silent = connect();  // has never asked: others go before it
  ASSERT_TRUE(poll_until([&] { return server_->connections() == 1; }));
  HttpClient first = connect();
  HttpClient second = connect();
  ASSERT_EQ(ask(first), 200);
  ASSERT_EQ(ask(second), 200);
  ASSERT_EQ(ask(first), 200);  // now the second is idle for longer

  HttpClient third = connect();
  ASSERT_EQ(ask(third), 200);
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(ask(first), 200);
  EXPECT_EQ(ask(silent), 200);
}

TEST_F(HttpLimits, however_many_connections_are_kept_alive_new_ones_are_served) {
  options_.max_connections = 16;
  start();
  std::list<HttpClient> kept;
  for (int i = 0; i < 200; ++i) {
    kept.push_back(connect());
    kept.back().send(request_text({"GET", "/hello/you"}, false));
    const auto answer = kept.back().read();
    ASSERT_TRUE(answer) << i;
    ASSERT_EQ(answer->status, 200) << i;
  }
  EXPECT_TRUE(poll_until([&] { return server_->connections() <= 16; }));
}

TEST_F(HttpLimits, connections_leave_file_descriptors_to_the_rest_of_the_process) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit few = usual;
  few.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  start();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);  // the clients of this test need some as well
  EXPECT_LE(server_->max_connections(), 50U);
  std::list<HttpClient> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(connect());
  std::size_t most = 0;
  EXPECT_TRUE(poll_until([&] {
    most = std::max(most, server_->connections());
    const auto answer = test::http(port(), {"GET", "/hello/you"});
    return answer && answer->status == 200;
  }));
  EXPECT_LE(most, 50U);
}

TEST_F(HttpLimits, requests_above_those_that_may_be_pending_are_429) {
  options_.max_pending = 3;
  start();
  std::list<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    clients.back().send(request_text({"GET", "/later"}, false));
  }
  ASSERT_TRUE(poll_until([&] { return waiting() == 3; }));
  const auto answer = call({"GET", "/hello/you"});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  answer_all();
  for (auto& client : clients) EXPECT_EQ(client.read().value().body, "at last");
  EXPECT_EQ(call({"GET", "/hello/you"}).status, 200);
}

TEST_F(HttpLimits, a_flood_of_connections_does_not_stop_it) {
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

TEST_F(HttpLimits, requests_beyond_what_may_wait_are_503) {
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

TEST_F(HttpLimits, many_requests_wait_without_a_thread_each) {
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

TEST_F(HttpLimits, stopping_lets_requests_finish_and_closes_idle_connections) {
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

}  // namespace
}  // namespace baton::http
