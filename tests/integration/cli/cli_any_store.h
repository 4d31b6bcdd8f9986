#pragma once

// What `baton` does on every store: the same, with the same exit codes. A test program names its
// store:
//
//   struct MyPlace {
//     std::string fresh();   // the URL of a store that nobody has used yet
//     std::string absent();  // of a server that does not answer; empty if there is no server
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyStore, CliAnyStore, MyPlace);

#include <csignal>

#include "integration/cli/cli_support.h"

namespace baton::test {

template <typename Place>
class CliAnyStore : public CliTest {
 protected:
  void SetUp() override {
    env_["BATON_STORE"] = place().fresh();
    ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  }

  // One for all tests of the program: a server takes seconds to start.
  static Place& place() {
    static Place place;
    return place;
  }

  void await_waiter() {
    EXPECT_TRUE(poll_until(
        [&] {
          return baton({"lock", "show", "job", "--json"}).out.find("\"waiting\":1") !=
                 std::string::npos;
        },
        patience, std::chrono::milliseconds(50)));
  }
};

TYPED_TEST_SUITE_P(CliAnyStore);

TYPED_TEST_P(CliAnyStore, run_excludes_and_loses) {
  auto process = this->hold("job", "echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(this->baton({"run", "job", "--", "true"}).status.code, 75);
  const auto found = this->baton({"lock", "find"});
  EXPECT_NE(found.out.find("job"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find(std::to_string(process->pid())), std::string::npos) << found.out;
  EXPECT_EQ(this->baton({"lock", "break", "job", "--reason", "r"}).status.code, 0);
  this->ends(*process, 76);
  EXPECT_EQ(this->baton({"run", "job", "--", "true"}).status.code, 0);
  EXPECT_EQ(this->baton({"lock", "find"}).out, "no locks\n");
}

TYPED_TEST_P(CliAnyStore, the_exit_code_is_that_of_the_command_or_of_its_signal) {
  EXPECT_EQ(this->baton({"run", "job", "--", "sh", "-c", "exit 7"}).status.code, 7);
  EXPECT_EQ(this->baton({"run", "job", "--", "sh", "-c", "kill -TERM $$"}).status.code,
            128 + SIGTERM);
  this->refuses({"run", "job", "--", "no-such-command"}, 127, "not_found", "command not found");
}

TYPED_TEST_P(CliAnyStore, the_command_knows_the_lock_as_the_store_does) {
  const std::string script = "echo $BATON_NAME $BATON_MODE $BATON_TOKEN $BATON_GRANT ready; read _";
  std::uint64_t last = 0;
  for (int run = 0; run < 2; ++run) {
    auto process = this->hold("job/7", script);
    std::istringstream words(process->out());
    std::string name;
    std::string mode;
    std::uint64_t token = 0;
    std::string grant;
    words >> name >> mode >> token >> grant;
    EXPECT_EQ(name, "DEFAULT:job:7");
    EXPECT_EQ(mode, "X");
    EXPECT_GT(token, last) << "tokens of a name grow";
    last = token;
    const auto shown = this->baton({"lock", "show", "job/7", "--json"}).out;
    EXPECT_NE(shown.find("\"grant\":\"" + grant +
                         "\",\"mode\":\"exclusive\",\"token\":" + std::to_string(token) + ","),
              std::string::npos)
        << process->out() << shown;
    process->close_stdin();
    this->ends(*process, 1);  // that of read
  }
}

TYPED_TEST_P(CliAnyStore, a_wait_that_is_over_is_75_and_says_who_holds_it) {
  auto holder = this->hold("job", "echo ready; read -r _", {"--owner", "somebody"});
  this->refuses({"run", "job", "--wait", "300ms", "--", "echo", "never"}, 75, "timed_out",
                "somebody");
  holder->write("go\n");
  this->ends(*holder, 0);
}

TYPED_TEST_P(CliAnyStore, at_least_for_keeps_it_taken_after_the_command_has_ended) {
  EXPECT_EQ(this->baton({"run", "job", "--at-least-for", "1h", "--", "true"}).status.code, 0);
  this->refuses({"run", "job", "--", "echo", "never"}, 75, "busy", "job");
  const auto shown = this->baton({"lock", "show", "job"}).out;
  EXPECT_NE(shown.find("released, stays taken"), std::string::npos) << shown;
}

TYPED_TEST_P(CliAnyStore, two_that_share_run_at_once_and_nobody_else) {
  const std::string script = "echo ready; read -r _";
  auto first = this->hold("job", script, {"--mode", "shared"});
  auto second = this->hold("job", script, {"--mode", "shared"});
  const auto shown = this->baton({"lock", "show", "job"}).out;
  EXPECT_EQ(shown.rfind("job: 2 holders, 0 waiting\n", 0), 0U) << shown;
  EXPECT_EQ(this->baton({"run", "job", "--", "true"}).status.code, 75);
  for (auto* process : {first.get(), second.get()}) {
    process->write("go\n");
    this->ends(*process, 0);
  }
  EXPECT_EQ(this->baton({"run", "job", "--", "true"}).status.code, 0);
}

TYPED_TEST_P(CliAnyStore, a_waiter_runs_when_the_first_is_done) {
  auto first = this->hold("job", "echo ready; read -r _");
  auto second = this->start({"run", "job", "--wait", "60s", "--", "echo", "mine"});
  this->await_waiter();
  first->write("go\n");
  this->ends(*first, 0);
  this->ends(*second, 0);
  EXPECT_EQ(second->out(), "mine\n");
}

TYPED_TEST_P(CliAnyStore, a_waiter_runs_when_the_first_is_killed) {
  auto first = this->hold("job", "echo ready; exec sleep 600", {"--ttl", "2s"});
  auto second = this->start({"run", "job", "--wait", "60s", "--", "echo", "mine"});
  this->await_waiter();
  first->kill(SIGKILL);
  this->ends(*second, 0);
  EXPECT_EQ(second->out(), "mine\n");
}

TYPED_TEST_P(CliAnyStore, a_policy_is_applied) {
  auto apply = this->start({"policy", "apply", "-"});
  apply->write("subjects: {job: {scope: predicate}}\n");
  apply->close_stdin();
  this->ends(*apply, 0);
  EXPECT_NE(this->baton({"policy", "show"}).out.find("scope: predicate"), std::string::npos);
  EXPECT_EQ(this->baton({"run", "job", "--", "true"}).status.code, 0);
}

TYPED_TEST_P(CliAnyStore, the_status_tells_where_it_is_and_migrating_again_does_nothing) {
  const auto status = this->baton({"store", "status"});
  EXPECT_EQ(status.status.code, 0) << status.err;
  const std::string url = this->env_["BATON_STORE"];
  EXPECT_NE(status.out.find(url.substr(0, url.find(':') + 1)), std::string::npos) << status.out;
  EXPECT_NE(this->baton({"store", "migrate"}).out.find("already"), std::string::npos);
}

TYPED_TEST_P(CliAnyStore, a_server_that_is_not_there_is_unavailable) {
  const std::string url = this->place().absent();
  if (url.empty()) return;
  this->env_["BATON_STORE"] = url;
  this->refuses({"run", "job", "--", "touch", "ran"}, 1, "unavailable", "127.0.0.1");
  EXPECT_FALSE(std::filesystem::exists(this->dir_ / "ran"));
  this->refuses({"lock", "find"}, 1, "unavailable", "127.0.0.1");
  this->refuses({"store", "status"}, 1, "unavailable", "127.0.0.1");
}

TYPED_TEST_P(CliAnyStore, a_run_that_may_wait_waits_for_the_store_too) {
  const std::string url = this->place().absent();
  if (url.empty()) GTEST_SKIP() << "a store without a server";
  this->env_["BATON_STORE"] = url;
  const auto ran = this->baton({"run", "job", "--wait", "300ms", "--", "touch", "ran"});
  EXPECT_EQ(ran.status.code, 1) << ran.err;
  EXPECT_EQ(ran.err.rfind("baton: waiting for the store: ", 0), 0U) << ran.err;
  EXPECT_NE(ran.err.find("127.0.0.1", ran.err.find('\n')), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("secret"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(this->dir_ / "ran"));
  this->refuses({"run", "job", "--quiet", "--wait", "300ms", "--", "true"}, 1, "unavailable",
                "127.0.0.1");
}

REGISTER_TYPED_TEST_SUITE_P(
    CliAnyStore, run_excludes_and_loses, the_exit_code_is_that_of_the_command_or_of_its_signal,
    the_command_knows_the_lock_as_the_store_does, a_wait_that_is_over_is_75_and_says_who_holds_it,
    at_least_for_keeps_it_taken_after_the_command_has_ended,
    two_that_share_run_at_once_and_nobody_else, a_waiter_runs_when_the_first_is_done,
    a_waiter_runs_when_the_first_is_killed, a_policy_is_applied,
    the_status_tells_where_it_is_and_migrating_again_does_nothing,
    a_server_that_is_not_there_is_unavailable, a_run_that_may_wait_waits_for_the_store_too);

}  // namespace baton::test
