#include <csignal>
#include <fstream>

#include "integration/cli/cli_any_store.h"
#include "support/postgres_server.h"  // free_port
#include "support/redis_server.h"

namespace baton::test {
namespace {

struct RedisPlace {
  RedisServer server;
  std::string fresh() {
    server.ask({"FLUSHALL"});
    return server.url();
  }
  static std::string absent() {
    return "redis://me:secret@127.0.0.1:" + std::to_string(free_port()) + "/0";
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, CliAnyStore, RedisPlace);

using CliRedis = CliAnyStore<RedisPlace>;

TEST_F(CliRedis, a_socket_will_do) {
  const std::string url = place().server.socket_url();
  EXPECT_EQ(baton({"--store", url, "run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRedis, the_status_tells_of_the_server) {
  const auto status = baton({"store", "status"});
  EXPECT_NE(status.out.find("noeviction"), std::string::npos) << status.out;
}

TEST_F(CliRedis, a_fence_on_a_server_that_is_not_there_is_unavailable) {
  refuses({"fence", "check", "--key", "DEFAULT:job", "1", "--database", place().absent()}, 1,
          "unavailable", "127.0.0.1");
}

TEST_F(CliRedis, tls_and_malformed_urls_are_refused_without_repeating_them) {
  for (const auto* url : {"redis://u:s3cret@h:port/0", "redis://u:s3c@ret@h/0",
                          "redis://u:s3c/ret@h/0", "redis://u:s3cret@h/0?x=y"}) {
    for (const Words& words :
         {Words{"lock", "find", "--store", url}, Words{"fence", "install", "--database", url}}) {
      refuses(words, 2, "bad_url", "");
      const auto told = baton(words).err;
      EXPECT_EQ(told.find("s3c"), std::string::npos) << told;
    }
  }
  const auto tls = baton({"fence", "rebase", "--database", "rediss://u:s3cret@h/0"});
  EXPECT_NE(tls.status.code, 0);
  EXPECT_NE(tls.err.find("TLS"), std::string::npos) << tls.err;
  EXPECT_EQ(tls.err.find("s3cret"), std::string::npos) << tls.err;
}

TEST_F(CliRedis, a_wrong_password_is_unauthorized_and_never_shown) {
  const RedisServer closed({.settings = {{"requirepass", "r1ght"}}});
  env_["BATON_STORE"] = "redis://:wr0ng@" + closed.address() + "/0";
  for (const Words& words :
       {Words{"run", "job", "--", "true"}, Words{"lock", "find"}, Words{"store", "status"},
        Words{"fence", "install", "--database", env_["BATON_STORE"]}}) {
    refuses(words, 1, "unauthorized", "password");
    refuses(words, 1, "unauthorized", closed.address());
    EXPECT_EQ(baton(words).err.find("wr0ng"), std::string::npos);
  }
  env_["BATON_STORE"] = "redis://:r1ght@" + closed.address() + "/0";
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRedis, run_and_elect_start_while_the_store_is_down_and_go_on_when_it_is_there) {
  RedisServer server;
  env_["BATON_STORE"] = server.url();
  server.stop();
  auto run = start({"run", "job", "--wait", "10m", "--", "echo", "done"});
  auto elect = start({"elect", "outbox", "--json", "--", "echo", "done"});
  EXPECT_TRUE(run->wait_for_err("baton: waiting for the store: ")) << run->err();
  EXPECT_TRUE(elect->wait_for_err(R"({"event":"waiting","for":"store","message":")"))
      << elect->err();
  server.start();
  for (auto* process : {run.get(), elect.get()}) {
    ends(*process, 0);
    EXPECT_EQ(process->out(), "done\n");
  }
}

TEST_F(CliRedis, a_signal_ends_the_wait_for_the_store) {
  env_["BATON_STORE"] = place().absent();
  for (const Words& words :
       {Words{"run", "job", "--wait", "1h", "--", "true"}, Words{"elect", "job", "--", "true"}}) {
    auto process = start(words);
    EXPECT_TRUE(process->wait_for_err("waiting for the store")) << process->err();
    process->kill(SIGTERM);
    ends(*process, 128 + SIGTERM);
  }
}

TEST_F(CliRedis, a_password_on_the_command_line_is_hidden_from_other_users) {
  auto process = start({"run", "job", "--wait", "1h", "--store", place().absent(), "--", "true"});
  ASSERT_TRUE(process->wait_for_err("waiting for the store")) << process->err();
  std::ifstream file("/proc/" + std::to_string(process->pid()) + "/cmdline");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(line.find("redis://me:***@127.0.0.1"), std::string::npos) << line;
  EXPECT_EQ(line.find("secret"), std::string::npos) << line;
}

TEST_F(CliRedis, a_token_is_checked_against_the_fence) {
  const std::string data = place().server.url();
  env_["BATON_STORE"] = store();  // the locks are elsewhere
  EXPECT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "9", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "5", "--database", data}).status.code, 0);
  place().server.ask({"HSET", "baton_fence:DEFAULT:job", "X", "7"});
  EXPECT_EQ(baton({"fence", "check", "job", "6", "--database", data}).status.code, 77);
  EXPECT_EQ(baton({"fence", "rebase", "--database", data, "--json"}).out, "{\"floor\":7}\n");
}

}  // namespace
}  // namespace baton::test
