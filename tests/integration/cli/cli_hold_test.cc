// baton hold, by a program that has its pipes.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "baton/fence.h"
#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

using Json = nlohmann::json;

class CliHold : public CliTest {
 protected:
  std::unique_ptr<Process> holding(const Words& words) const {
    Words all{"hold"};
    all.insert(all.end(), words.begin(), words.end());
    auto process = start(std::move(all));
    EXPECT_EQ(event(*process, "granted")["event"], "granted") << process->out() << process->err();
    return process;
  }

  // The first line of that kind, null if none comes.
  static Json event(Process& process, const std::string& kind) {
    const std::string begin = "{\"event\":\"" + kind + "\"";
    if (!process.wait_for_out(begin)) return nullptr;
    Json found;
    poll_until([&] {
      const std::string out = process.out();
      const auto at = out.find(begin);
      const auto end = out.find('\n', at);
      if (end != std::string::npos) found = Json::parse(out.substr(at, end - at), nullptr, false);
      return end != std::string::npos;
    });
    return found;
  }

  bool is_busy(const std::string& name) const {
    return baton({"run", name, "--", "true"}).status.code == 75;
  }
  bool gets_free(const std::string& name) const {
    return baton({"run", name, "--wait", "30s", "--", "true"}).status.code == 0;
  }
};

TEST_F(CliHold, a_lock_is_kept_until_it_is_released) {
  auto holder = holding({"job", "--metadata", "why=test"});
  EXPECT_TRUE(is_busy("job"));
  EXPECT_NE(baton({"lock", "show", "job"}).out.find("why=test"), std::string::npos);
  holder->write("release\n");
  ends(*holder, 0);
  EXPECT_EQ(event(*holder, "released")["reason"], "release");
  EXPECT_EQ(holder->err(), "");
  EXPECT_FALSE(is_busy("job"));
}

TEST_F(CliHold, the_end_of_stdin_releases) {
  auto holder = holding({"job"});
  holder->close_stdin();
  ends(*holder, 0);
  EXPECT_EQ(event(*holder, "released")["reason"], "stdin was closed");
  EXPECT_FALSE(is_busy("job"));
}

TEST_F(CliHold, a_signal_that_asks_to_end_releases) {
  auto holder = holding({"job"});
  holder->kill(SIGTERM);
  ends(*holder, 143);
  EXPECT_EQ(event(*holder, "released")["reason"], "SIGTERM");
  EXPECT_FALSE(is_busy("job"));
}

TEST_F(CliHold, several_names_are_one_lease_and_the_fence_has_them_all) {
  auto holder = holding({"page/1", "page/2"});
  const Json granted = event(*holder, "granted");
  EXPECT_EQ(granted["names"], Json({"page/1", "page/2"}));
  const auto tokens = parse_fence_tokens(granted["fence"].dump());
  ASSERT_TRUE(tokens);
  ASSERT_EQ(tokens->size(), 2U);
  EXPECT_EQ((*tokens)[1].key, "DEFAULT:page:2");
  EXPECT_EQ(std::to_string((*tokens)[0].token), granted["token"]);
  EXPECT_TRUE(is_busy("page/1"));
  EXPECT_TRUE(is_busy("page/2"));
  auto second = start({"hold", "page/2", "page/3"});
  ends(*second, 75);
  EXPECT_FALSE(is_busy("page/3")) << "all or none";
}

TEST_F(CliHold, who_does_not_get_it_is_told_on_both_sides) {
  auto holder = holding({"job", "--owner", "web-1"});
  auto second = start({"hold", "job", "--json"});
  ends(*second, 75);
  const Json busy = event(*second, "error");
  EXPECT_EQ(busy["code"], "busy");
  EXPECT_EQ(busy["retryable"], true);
  EXPECT_EQ(busy["final"], true);
  EXPECT_EQ(Json::parse(second->err())["error"]["code"], "busy");
  auto third = start({"hold", "job", "--wait", "100ms"});
  ends(*third, 75);
  const std::string why = event(*third, "error")["message"];
  EXPECT_NE(why.find("was not free within 100ms; held by web-1"), std::string::npos) << why;
  auto wrong = start({"hold", "job", "--store", "nonsense:"});
  ends(*wrong, 2);
  EXPECT_EQ(event(*wrong, "error")["code"], "bad_url");
}

TEST_F(CliHold, a_wait_is_over_when_the_lock_is_free_and_can_be_given_up) {
  auto holder = holding({"job"});
  auto second = start({"hold", "job", "--wait", "1h", "--progress"});
  EXPECT_EQ(event(*second, "waiting")["names"], Json({"job"}));
  auto third = start({"hold", "job", "--wait", "1h", "--progress"});
  EXPECT_TRUE(event(*third, "waiting").is_object());
  third->write("note a\n");
  EXPECT_EQ(event(*third, "error")["code"], "bad_request") << third->out();
  third->write("release\n");
  ends(*third, 1);
  EXPECT_NE(third->out().find("\"cancelled\""), std::string::npos) << third->out();
  holder->write("release\n");
  EXPECT_TRUE(event(*second, "granted").is_object()) << second->out();
  EXPECT_EQ(second->out().find("{\"event\":\"waiting\""), 0U);
}

TEST_F(CliHold, notes_are_written_under_the_lock) {
  auto holder = holding({"job", "--note", "begun", "--ordinal", "7"});
  EXPECT_EQ(baton({"lock", "show", "job"}).out.find("note 7: begun") == std::string::npos, false);
  holder->write("{\"note\":\"half\",\"ordinal\":8}\n");
  EXPECT_EQ(event(*holder, "noted")["note"], (Json{{"ordinal", 8}, {"text", "half"}}));
  holder->write("{\"release\":true,\"note\":\"done\"}\n");
  ends(*holder, 0);
  auto late = start({"hold", "job", "--if-ordinal-below", "8"});
  ends(*late, 1);
  EXPECT_EQ(event(*late, "error")["code"], "superseded");
  const Json next = event(*holding({"job", "--if-ordinal-below", "9"}), "granted");
  EXPECT_EQ(next["note"], (Json{{"ordinal", 8}, {"text", "done"}}));
}

TEST_F(CliHold, what_is_not_understood_is_answered_and_nothing_else_happens) {
  auto holder = holding({"job"});
  holder->write("relaese\n{\"note\":5}\n" + std::string(70'000, 'x') + "\n" +
                std::string("note a\0b\n", 9) + "note " + std::string(5'000, 'x') + "\nstatus\n");
  const Json status = event(*holder, "status");
  EXPECT_EQ(status["held"], true);
  EXPECT_GT(status["trusted_ms"], 0);
  const std::string out = holder->out();
  for (const auto* told :
       {"unknown word 'relaese'", "is a text", "at most 65536 bytes", "at most 4096 bytes"}) {
    EXPECT_NE(out.find(told), std::string::npos) << told << "\n" << out;
  }
  EXPECT_TRUE(is_busy("job"));
}

TEST_F(CliHold, renewals_are_told_who_asks_for_them) {
  auto holder = holding({"job", "--ttl", "600ms", "--progress"});
  const Json granted = event(*holder, "granted");
  const Json renewed = event(*holder, "renewed");
  ASSERT_TRUE(renewed.is_object()) << holder->out();
  EXPECT_GT(renewed["trusted_until_boottime_ms"], granted["trusted_until_boottime_ms"]);
}

TEST_F(CliHold, a_broken_lock_is_lost_and_free_when_the_program_has_answered) {
  auto holder = holding({"job", "--ttl", "1h"});
  auto breaking = start({"lock", "break", "job", "--reason", "stuck since noon"});
  const Json lost = event(*holder, "lost");
  EXPECT_NE(lost["reason"].get<std::string>().find("stuck since noon"), std::string::npos) << lost;
  EXPECT_GT(lost["over_in_ms"], 60'000);
  EXPECT_TRUE(is_busy("job")) << "the program may still be writing";
  EXPECT_TRUE(breaking->running());
  holder->write("release\n");
  ends(*holder, 76);
  ends(*breaking, 0);
  EXPECT_NE(holder->err().find("lost the lock job"), std::string::npos) << holder->err();
}

TEST_F(CliHold, a_lock_that_ran_out_while_baton_stood_still_is_lost_and_the_fence_refuses) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((dir_ / "data.db").c_str(), &database), SQLITE_OK);
  sqlite3_busy_timeout(database, 30'000);
  ASSERT_TRUE(install_fence(database));
  const auto fenced = [&](const Json& granted) {
    const auto tokens = parse_fence_tokens(granted["fence"].dump()).value();
    const auto ok = fence_alone(database, std::span<const FenceToken>(tokens));
    return !ok && ok.error().code == Code::fenced;
  };
  std::unique_ptr<Process> holder;
  std::unique_ptr<Process> next;
  // One that was stopped inside a transaction of SQLite keeps everybody out: then another one is.
  do {
    holder = holding({"job", "--ttl", "3s"});
    ASSERT_TRUE(stop_still(holder->pid()));
    next = baton({"run", "other", "--", "true"}).status.code == 0 ? holding({"job", "--wait", "1m"})
                                                                  : nullptr;
  } while (next == nullptr);
  EXPECT_FALSE(fenced(event(*next, "granted")));
  holder->kill(SIGCONT);
  ends(*holder, 76);
  EXPECT_EQ(event(*holder, "lost")["over_in_ms"], 0) << holder->out();
  EXPECT_TRUE(fenced(event(*holder, "granted")));
  sqlite3_close(database);
}

TEST_F(CliHold, it_does_not_outlive_the_process_that_started_it) {
  auto made = options({});
  made.argv = {"sh", "-c", "exec 3<&0; \"$0\" hold job --ttl 1h <&3 3<&- & wait", program_};
  Process parent(made);
  ASSERT_TRUE(event(parent, "granted").is_object()) << parent.err();
  parent.kill(SIGKILL);
  EXPECT_TRUE(gets_free("job")) << "its stdin is still open, and its TTL is far away";
}

TEST_F(CliHold, a_reader_that_has_gone_releases) {
  auto made = options({});
  made.argv = {"sh", "-c", "exec 3<&0; \"$0\" hold job --ttl 1h <&3 | head -n 1", program_};
  Process pipeline(made);
  ASSERT_TRUE(pipeline.wait_for_out("granted")) << pipeline.err();
  EXPECT_TRUE(gets_free("job"));
}

TEST_F(CliHold, a_reader_that_does_not_read_delays_neither_renewals_nor_the_end) {
  const std::string fifo = (dir_ / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const std::string page(4096, 'x');
  while (write(reader, page.data(), page.size()) > 0) {
  }
  auto made = options({});
  made.argv = {"sh", "-c", "exec \"$0\" hold job --ttl 500ms --progress > fifo", program_};
  Process holder(made);
  EXPECT_TRUE(poll_until([&] {
    const Json shown = Json::parse(baton({"lock", "show", "job", "--json"}).out, nullptr, false);
    const Json holders = shown.value("holders", Json::array());
    return !holders.empty() && holders[0].value("held_for_ms", 0) > 1'500;
  })) << "it is renewed";
  holder.kill(SIGTERM);
  ends(holder, 143);
  EXPECT_FALSE(is_busy("job"));
  close(reader);
}

TEST_F(CliHold, a_stdin_that_ends_before_the_grant_is_named) {
  auto holder = holding({"job"});
  auto made = options({});
  made.argv = {"sh", "-c", "exec \"$0\" hold job --wait 1h </dev/null", program_};
  const auto done = run(made);
  EXPECT_FALSE(done.status.success());
  const std::string why = "not granted yet: stdin was closed; hold needs a stdin that stays open";
  EXPECT_NE(done.out.find(why), std::string::npos) << done.out;
  EXPECT_NE(done.err.find(why), std::string::npos) << done.err;
}

TEST_F(CliHold, without_stdin_or_stdout_it_does_not_begin) {
  for (const std::string closed : {"<&-", ">&-"}) {
    auto made = options({});
    made.argv = {"sh", "-c", "exec \"$0\" hold job " + closed, program_};
    const auto done = run(made);
    EXPECT_EQ(done.status.code, 2) << done.err;
    EXPECT_NE(done.err.find("leave both open"), std::string::npos) << done.err;
  }
}

}  // namespace
}  // namespace baton::test
