// What `documents up`, `verify` and `trace` say to somebody who has done something wrong.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <system_error>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_, any, size) != 0 || ::listen(fd_, 1) != 0 ||
        ::getsockname(fd_, any, &size) != 0) {
      throw std::system_error(errno, std::generic_category());
    }
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

Finished documents(std::vector<std::string> words) {
  words.insert(words.begin(), BATON_DOCUMENTS);
  return run({.argv = std::move(words)});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DocumentsUp, names_a_port_that_is_taken_before_it_starts_anything) {
  const TempDir dir{"documents-up"};
  const Listener taken;
  const Finished up =
      documents({"up", "--directory", dir.path().string(), "--port", std::to_string(taken.port()),
                 "--replicas", "validation=0,enrichment=0,audit=0,notification=0"});
  EXPECT_EQ(up.status.code, 2);
  EXPECT_TRUE(contains(up.err, "port " + std::to_string(taken.port()) + ", for ingestion: "))
      << up.err;
  EXPECT_TRUE(contains(up.err, "--port")) << up.err;
  EXPECT_EQ(up.out, "");
}

TEST(DocumentsUp, refuses_a_directory_that_another_one_runs_on) {
  const TempDir dir{"documents-up"};
  const std::vector<std::string> words = {"up", "--port", "0", "--directory", dir.path().string()};
  std::vector<std::string> argv = words;
  argv.insert(argv.begin(), BATON_DOCUMENTS);
  Process first{{.argv = argv}};
  ASSERT_TRUE(first.wait_for_out("ready: POST http://127.0.0.1:", 2 * patience)) << first.out();
  const Finished second = documents(words);
  EXPECT_EQ(second.status.code, 2);
  EXPECT_TRUE(contains(second.err, "another 'documents up' runs on " + dir.path().string()))
      << second.err;
  EXPECT_TRUE(contains(second.err, "--directory")) << second.err;
  first.kill(SIGTERM);
  const auto ended = first.wait(2 * patience);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0);
  EXPECT_TRUE(contains(first.out(), "stopped; the next 'documents up'")) << first.out();
}

TEST(DocumentsUp, refuses_settings_of_its_services_before_it_starts_anything) {
  const TempDir dir{"documents-up"};
  const Finished up = documents(
      {"up", "--port", "0", "--directory", dir.path().string(), "--lock-ttl", "1 parsec"});
  EXPECT_EQ(up.status.code, 2);
  EXPECT_TRUE(contains(up.err, "documents: --lock-ttl: write a time")) << up.err;
  EXPECT_EQ(up.out, "");
}

TEST(DocumentsUp, names_an_unusable_broker_and_directory) {
  const TempDir dir{"documents-up"};
  const Finished broker =
      documents({"up", "--directory", dir.path().string(), "--rabbitmq", "carrier-pigeon:x"});
  EXPECT_EQ(broker.status.code, 2);
  EXPECT_TRUE(contains(broker.err, "rabbitmq://")) << broker.err;

  const Finished directory = documents({"up", "--directory", "/dev/null/documents"});
  EXPECT_EQ(directory.status.code, 2);
  EXPECT_TRUE(contains(directory.err, "cannot make /dev/null/documents")) << directory.err;
  EXPECT_TRUE(contains(directory.err, "--directory")) << directory.err;
}

TEST(DocumentsUp, leaves_a_service_that_says_again_and_again_that_it_cannot_work) {
  const TempDir dir{"documents-up"};
  const auto path = dir.path() / "audit.db";
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database,
                         "CREATE TABLE audit_version (version integer NOT NULL);"
                         "INSERT INTO audit_version VALUES (99)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  const Finished up =
      documents({"up", "--port", "0", "--directory", dir.path().string(), "--replicas",
                 "ingestion=0,validation=0,enrichment=0,notification=0"});
  EXPECT_EQ(up.status.code, 1);
  EXPECT_TRUE(contains(up.out, "is not started again")) << up.out;
  EXPECT_TRUE(contains(up.err, "no service can work")) << up.err;
  EXPECT_TRUE(contains(up.err, "newer")) << up.err;
}

TEST(DocumentsUp, what_looks_at_a_platform_says_how_to_get_one) {
  const TempDir dir{"documents-up"};
  const std::string nowhere = (dir.path() / "nowhere").string();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"verify"}, {"trace", "x"}, {"audit", "verify"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--directory", nowhere});
    const Finished finished = documents(all);
    EXPECT_EQ(finished.status.code, 1) << words[0];
    EXPECT_TRUE(contains(finished.err, "there is no directory " + nowhere)) << finished.err;
    EXPECT_TRUE(contains(finished.err, "'documents up' makes it")) << finished.err;
    all.back() = dir.path().string();  // which is there, but has no databases
    const Finished empty = documents(all);
    EXPECT_TRUE(contains(empty.err, "there is no file " + all.back())) << empty.err;
    EXPECT_TRUE(contains(empty.err, "--postgres")) << empty.err;
  }
}

}  // namespace
}  // namespace baton::test
