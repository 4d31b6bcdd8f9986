#include "baton/metrics_server.h"

#include <fcntl.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "support/http_client.h"
#include "support/process.h"

namespace baton::observe {
namespace {

TEST(MetricsServer, serves_the_metrics_and_says_that_the_process_lives) {
  const auto metrics = std::make_shared<Metrics>();
  metrics->counter("a_total", "A.").add(3);
  const auto server = MetricsServer::start("127.0.0.1:0", metrics).value();
  const auto text = test::http(server->port(), {.path = "/metrics"});
  ASSERT_TRUE(text);
  EXPECT_EQ(text->status, 200);
  EXPECT_EQ(text->headers.at("content-type"), Metrics::kContentType);
  EXPECT_NE(text->body.find("\na_total 3\n"), std::string::npos) << text->body;
  EXPECT_EQ(test::http(server->port(), {.path = "/healthz"})->status, 200);
  EXPECT_EQ(test::http(server->port(), {.path = "/"})->status, 404);
  EXPECT_EQ(server->url(), "http://127.0.0.1:" + std::to_string(server->port()));
}

TEST(MetricsServer, addresses_that_make_no_sense_or_are_taken_are_refused_in_one_line) {
  const auto metrics = std::make_shared<Metrics>();
  for (const std::string listen : {"", ":", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000",
                                   "127.0.0.1:1x", "localhost:9464", "[]:1"}) {
    const auto server = MetricsServer::start(listen, metrics);
    ASSERT_FALSE(server) << listen;
    EXPECT_EQ(server.error().code, Code::bad_request) << listen;
    EXPECT_TRUE(server.error().message.starts_with("metrics: ")) << server.error().message;
  }
  const auto first = MetricsServer::start("127.0.0.1:0", metrics).value();
  const auto second = MetricsServer::start("127.0.0.1:" + std::to_string(first->port()), metrics);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::unavailable);
}

TEST(MetricsServer, warns_of_a_listener_that_others_reach) {
  const auto metrics = std::make_shared<Metrics>();
  for (const char* listen : {"127.0.0.1:0", "127.1.2.3:0"}) {
    EXPECT_EQ(MetricsServer::start(listen, metrics).value()->warning(), "") << listen;
  }
  const auto open = MetricsServer::start("0.0.0.0:0", metrics).value();
  EXPECT_NE(open->warning().find(open->url()), std::string::npos) << open->warning();
}

TEST(MetricsServer, programs_that_the_process_starts_do_not_inherit_the_port) {
  const auto server = MetricsServer::start("127.0.0.1:0", std::make_shared<Metrics>()).value();
  std::size_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!target.starts_with("socket:")) continue;
    ++sockets;
    const int file = std::atoi(entry.path().filename().c_str());
    EXPECT_NE(fcntl(file, F_GETFD) & FD_CLOEXEC, 0) << entry.path();
  }
  EXPECT_GE(sockets, 1U);
}

}  // namespace
}  // namespace baton::observe
