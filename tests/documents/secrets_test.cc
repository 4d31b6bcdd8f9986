// Passwords of URLs are in no log, no answer, no error and no command line.

#include <filesystem>
#include <fstream>
#include <iterator>

#include "api_fixture.h"

namespace baton::test {
namespace {

constexpr const char* kSecret = "s3cr3t-of-the-test";

std::string with_password(const std::string& url) {
  const auto at = url.find('@');
  if (at == std::string::npos) {
    const auto host = url.find("://") + 3;
    return url.substr(0, host) + "nobody:" + kSecret + "@" + url.substr(host);
  }
  const std::string user = url.substr(
      0, url.find(':', url.find("://") + 3) < at ? url.find(':', url.find("://") + 3) : at);
  return user + ":" + kSecret + url.substr(at);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What `ps` shows of every process.
std::string all_command_lines() {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    all += read_file(entry.path() / "cmdline");
  }
  return all;
}

// A service that cannot reach its servers, told by the environment how to.
class Secrets : public testing::Test {
 protected:
  // Its port, once it serves.
  static int port_of(const std::filesystem::path& run_file) {
    std::string text;
    if (!poll_until([&] { return !(text = read_file(run_file)).empty(); })) return 0;
    return std::stoi(text.substr(text.rfind(':') + 1));
  }
  TempDir directory_{"secrets"};
};

TEST_F(Secrets, of_a_broker_that_refuses_are_nowhere) {
  const auto run_file = directory_ / "run";
  Process service({.argv = {BATON_DOCUMENTS, "validation", "--listen", "127.0.0.1:0", "--run-file",
                            run_file.string(), "--log-level", "debug"},
                   .env = {{"DOCUMENTS_DATABASE", "sqlite:" + (directory_ / "v.db").string()},
                           {"DOCUMENTS_BROKER", with_password("rabbitmq://ann@127.0.0.1:1/")}}});
  const int port = port_of(run_file);
  ASSERT_NE(port, 0) << service.out() << service.err();
  const auto answer = ask(port, {.method = "GET", .path = "/readyz"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_NE(answer->body.find("broker"), std::string::npos) << answer->body;
  EXPECT_TRUE(service.wait_for_out("127.0.0.1:1")) << "the log says which broker it is";
  EXPECT_EQ(answer->body.find(kSecret), std::string::npos) << answer->body;
  EXPECT_EQ(all_command_lines().find(kSecret), std::string::npos);
  const auto metrics = ask(port, {.method = "GET", .path = "/metrics"});
  EXPECT_EQ(metrics->body.find(kSecret), std::string::npos);
  service.kill(SIGTERM);
  EXPECT_TRUE(service.wait());
  EXPECT_EQ((service.out() + service.err()).find(kSecret), std::string::npos) << service.out();
}

TEST_F(Secrets, of_urls_that_cannot_be_used_are_not_in_the_error) {
  const std::vector<std::map<std::string, std::string>> rows = {
      {{"DOCUMENTS_DATABASE", std::string("postgres://ann:") + kSecret + "@h/x?no_such=1"}},
      {{"DOCUMENTS_DATABASE", std::string("postgres//ann:") + kSecret + "@h/x"}},
      {{"DOCUMENTS_BROKER", std::string("rabbitmq://ann:") + kSecret + "@h:port/"}},
      {{"DOCUMENTS_BROKER", std::string("amqp://ann:") + kSecret + "@h/"}},
      {{"DOCUMENTS_LOCKS", std::string("redis://ann:") + kSecret + "@h:port"}}};
  for (auto environment : rows) {
    environment.emplace("DOCUMENTS_DATABASE", "sqlite:" + (directory_ / "x.db").string());
    environment.emplace("DOCUMENTS_BROKER", "embedded:" + (directory_ / "b.db").string());
    const auto finished = run(
        {.argv = {BATON_DOCUMENTS, "validation", "--listen", "127.0.0.1:0"}, .env = environment});
    EXPECT_FALSE(finished.status.success());
    EXPECT_FALSE(finished.err.empty());
    EXPECT_EQ((finished.out + finished.err).find(kSecret), std::string::npos)
        << finished.out << finished.err;
  }
}

TEST_F(Secrets, of_the_servers_of_up_are_in_no_log_no_table_of_processes_and_no_output) {
  if (!on_servers()) GTEST_SKIP() << "files have no passwords";
  const std::string prefix = "secrets_" + std::to_string(getpid()) + "_";
  const std::string data = (directory_ / "data").string();
  const std::map<std::string, std::string> environment = {
      {"DOCUMENTS_POSTGRES", with_password(shared_server())},
      {"DOCUMENTS_RABBITMQ", with_password(rabbit().url())}};
  Process up(
      {.argv = {BATON_DOCUMENTS, "up", "--port", "0", "--directory", data, "--prefix", prefix},
       .env = environment});
  // The password of the broker is wrong: each service says so and ends, and is started again.
  for (const char* service : {"ingestion", "validation", "enrichment", "audit", "notification"}) {
    ASSERT_TRUE(up.wait_for_out(std::string(service) + "-1 ended", 2 * patience))
        << up.out() << up.err();
  }
  EXPECT_EQ(all_command_lines().find(kSecret), std::string::npos);
  const auto verified =
      run({.argv = {BATON_DOCUMENTS, "verify", "--directory", data, "--prefix", prefix},
           .env = environment});
  EXPECT_EQ((verified.out + verified.err).find(kSecret), std::string::npos);
  up.kill(SIGTERM);
  EXPECT_TRUE(up.wait());
  EXPECT_EQ((up.out() + up.err()).find(kSecret), std::string::npos) << up.out() << up.err();
  int logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/logs")) {
    ++logs;
    EXPECT_EQ(read_file(entry.path()).find(kSecret), std::string::npos) << entry.path();
  }
  EXPECT_EQ(logs, 5);
  for (const char* service : {"ingestion", "validation", "enrichment", "audit", "notification"}) {
    Session(shared_server()).sql("DROP DATABASE " + prefix + service + " WITH (FORCE)");
  }
}

}  // namespace
}  // namespace baton::test
