// baton lock: what is found, shown, counted and broken.

#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

class CliLock : public CliTest {
 protected:
  // Soon: others are still on their way to the store.
  bool finds(const Words& words, const std::string& part) const {
    return poll_until([&] { return baton(words).out.find(part) != std::string::npos; }, patience,
                      std::chrono::milliseconds(50));
  }
};

constexpr const char* kForEver = "echo ready; while :; do sleep 0.05; done";

TEST_F(CliLock, an_empty_store_says_so) {
  EXPECT_EQ(baton({"lock", "find"}).out, "no locks\n");
  EXPECT_EQ(baton({"lock", "list"}).out, "no locks\n");
  EXPECT_EQ(baton({"lock", "find", "a"}).out, "no locks match\n");
  EXPECT_EQ(baton({"lock", "stats"}).out, "no locks are held\n");
  EXPECT_EQ(baton({"lock", "show", "a/b"}).out, "a/b is free\n");
  EXPECT_EQ(baton({"lock", "break", "a", "--reason", "r"}).out, "a was held by nobody\n");
  EXPECT_EQ(baton({"lock", "find", "--json"}).out, "{\"locks\":[],\"more\":false}\n");
}

TEST_F(CliLock, held_locks_are_found_and_shown) {
  auto first = hold("page/fs-1/doc/3", kForEver, {"--predicate", "extracting", "--owner", "web-1"});
  auto second = hold("page/fs-2/doc/1", kForEver,
                     {"--mode", "shared", "--owner", "\x1b[31mred", "--region", "EU"});
  const auto all = baton({"lock", "find", "--subject", "page"});
  EXPECT_NE(all.out.find("page/fs-1/doc/3"), std::string::npos);
  EXPECT_NE(all.out.find("page/fs-2/doc/1 (EU)"), std::string::npos) << "of all regions";
  EXPECT_EQ(all.out.find('\x1b'), std::string::npos) << "no escape reaches the terminal";
  for (const Words& filter : {Words{"--resource", "fs-1"}, Words{"--resource", "fs-1/doc"},
                              Words{"--mode", "X"}, Words{"--predicate", "extracting"},
                              Words{"--owner", "web-1"}, Words{"--region", "DEFAULT"}}) {
    Words words{"lock", "find"};
    words.insert(words.end(), filter.begin(), filter.end());
    const auto some = baton(words);
    EXPECT_NE(some.out.find("page/fs-1/doc/3"), std::string::npos) << some.out;
    EXPECT_EQ(some.out.find("page/fs-2"), std::string::npos) << some.out;
  }
  EXPECT_EQ(baton({"lock", "find", "--subject", "page", "--owner", "nobody"}).out,
            "no locks match\n");
  EXPECT_EQ(baton({"lock", "find", "--region", "US"}).out, "no locks match\n");
  const auto european = baton({"lock", "find", "--region", "EU"}).out;
  EXPECT_NE(european.find("page/fs-2/doc/1 (EU)"), std::string::npos) << european;
  EXPECT_EQ(european.find("page/fs-1"), std::string::npos) << european;
  const auto json = baton({"lock", "show", "page/fs-1/doc/3", "--json"});
  EXPECT_NE(json.out.find("\"predicate\":\"extracting\""), std::string::npos) << json.out;
  EXPECT_EQ(json.out.find('\n'), json.out.size() - 1);
}

TEST_F(CliLock, a_waiter_is_found_by_its_owner) {
  auto holder = hold("job", kForEver, {"--owner", "web-1"});
  auto waiter = start({"run", "job", "--wait", "1h", "--owner", "web-2", "--", "true"});
  EXPECT_TRUE(finds({"lock", "find", "--owner", "web-2"}, "waiting"));
  const auto found = baton({"lock", "find", "--owner", "web-2"}).out;
  EXPECT_NE(found.find("web-2"), std::string::npos) << found;
  EXPECT_EQ(found.find("web-1"), std::string::npos) << found;
}

TEST_F(CliLock, stats_count_and_average_by_kind_and_show_the_longest_queues) {
  const auto reads = [&](const std::string& name, const std::string& ttl) {
    return hold(name, kForEver, {"--predicate", "reading", "--ttl", ttl});
  };
  const auto one = reads("job/1", "1m");
  const auto two = reads("job/2", "3m");
  const auto page = hold("page/7", kForEver, {"--predicate", "writing", "--ttl", "2h"});
  std::vector<std::unique_ptr<Process>> queue;
  for (const auto* name : {"job/1", "job/2", "job/2"}) {
    const std::string predicate = queue.size() == 2 ? "writing" : "reading";
    queue.push_back(
        start({"run", name, "--predicate", predicate, "--wait", "1h", "--", "echo", "never"}));
  }
  EXPECT_TRUE(finds({"lock", "stats"}, "3 held, 3 waiting"));
  const std::string counts =
      "3 held, 3 waiting, on 3 names\n\n"
      "SUBJECT  PREDICATE  HELD  WAITING  AVERAGE TTL\n"
      "job      reading    2     2        2m00s\n"
      "job      writing    0     1        -\n"
      "page     writing    1     0        2h00m\n\n"
      "MOST CONTENDED  WAITING\n"
      "job/2           2\n";
  EXPECT_EQ(baton({"lock", "stats"}).out, counts + "job/1           1\n");
  EXPECT_EQ(baton({"lock", "stats", "--top", "1"}).out, counts);
  const std::string kinds =
      R"({"names":3,"held":3,"waiting":3,"average_ttl_ms":2480000,"kinds":[)"
      R"({"subject":"job","predicate":"reading","held":2,"waiting":2,"average_ttl_ms":120000},)"
      R"({"subject":"job","predicate":"writing","held":0,"waiting":1,"average_ttl_ms":0},)"
      R"({"subject":"page","predicate":"writing","held":1,"waiting":0,"average_ttl_ms":7200000}],)"
      R"("contended":[{"key":"DEFAULT:job:2","waiting":2})";
  EXPECT_EQ(baton({"lock", "stats", "--json"}).out,
            kinds + ",{\"key\":\"DEFAULT:job:1\",\"waiting\":1}],\"damaged\":[]}\n");
  EXPECT_EQ(baton({"lock", "stats", "--json", "--top", "1"}).out, kinds + "],\"damaged\":[]}\n");
  EXPECT_EQ(baton({"lock", "stats", "--region", "EU"}).out, "no locks are held\n");
}

TEST_F(CliLock, the_text_form_of_a_name_is_understood_everywhere) {
  auto process = hold("lock:shared:schema:reading:t-1", kForEver);
  const auto shown = baton({"lock", "show", "schema/t-1"});
  EXPECT_NE(shown.out.find("shared"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("reading"), std::string::npos) << shown.out;
}

TEST_F(CliLock, break_now_warns_of_what_it_risks) {
  auto process = hold("job", kForEver);
  const auto broken = baton({"lock", "break", "job", "--reason", "r", "--now"});
  EXPECT_EQ(broken.status.code, 0);
  EXPECT_NE(broken.err.find("may still be writing"), std::string::npos) << broken.err;
  EXPECT_NE(broken.out.find("job: broken, was held by"), std::string::npos) << broken.out;
}

TEST_F(CliLock, break_now_warns_in_json_too) {
  auto process = hold("job", kForEver);
  const auto broken = baton({"lock", "break", "job", "--reason", "r", "--now", "--json"});
  EXPECT_EQ(broken.status.code, 0);
  EXPECT_EQ(broken.err, "");
  EXPECT_EQ(broken.out.rfind(R"({"name":"job","broken":[{"grant":")", 0), 0U) << broken.out;
  EXPECT_NE(broken.out.find(R"(}],"warning":"the holder was not waited for)"), std::string::npos)
      << broken.out;
  EXPECT_EQ(broken.out.find('\n'), broken.out.size() - 1) << "one document";
  ends(*process, 76);
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r", "--now", "--json"}).out,
            "{\"name\":\"job\",\"broken\":[]}\n")
      << "nobody was hit";
}

TEST_F(CliLock, a_break_that_times_out_says_when_it_ends) {
  auto process = hold("job", kForEver, {"--ttl", "1h"});
  ASSERT_TRUE(stop_still(process->pid()));
  const auto broken = baton({"lock", "break", "job", "--reason", "r", "--timeout", "300ms"});
  EXPECT_EQ(broken.status.code, 75) << broken.err;
  EXPECT_NE(broken.err.find("at the latest, or use --now"), std::string::npos) << broken.err;
  process->kill(SIGCONT);
}

TEST_F(CliLock, a_name_finds_itself_and_what_is_below_it) {
  auto page = hold("page/fs-1/doc-7", kForEver);
  auto other = hold("page/fs-2", kForEver);
  auto job = hold("job", kForEver);
  const auto found = [&](Words words) {
    words.insert(words.begin(), "lock");
    const auto done = baton(words);
    EXPECT_EQ(done.status.code, 0) << done.err;
    return done.out;
  };
  const std::string below = found({"find", "page/fs-1"});
  EXPECT_NE(below.find("page/fs-1/doc-7"), std::string::npos) << below;
  EXPECT_EQ(below.find("page/fs-2"), std::string::npos) << below;
  EXPECT_NE(found({"find", "job"}).find("job"), std::string::npos);
  EXPECT_EQ(found({"find", "jo"}), "no locks match\n");
  const std::string all = found({"list"});
  for (const auto* name : {"page/fs-1/doc-7", "page/fs-2", "job"}) {
    EXPECT_NE(all.find(name), std::string::npos) << all;
  }
  refuses({"lock", "find", "a//b"}, 2, "bad_name", "empty");
  refuses({"lock", "find", "page", "--subject", "page"}, 2, "bad_request", "not both");
}

TEST_F(CliLock, a_watch_tells_what_changes_a_line_each) {
  auto watch = start({"lock", "find", "--watch"});
  auto json = start({"lock", "list", "--watch", "--json"});
  EXPECT_TRUE(json->wait_for_out("{\"locks\":[],\"more\":false}\n")) << json->err();
  auto holder = hold("job", "echo ready; read line", {"--owner", "web-1"});
  EXPECT_TRUE(watch->wait_for_out("+ job  exclusive  holding  web-1  token 1  - waiting  held\n"))
      << watch->out() << watch->err();
  EXPECT_TRUE(json->wait_for_out("\"owner\":\"web-1\"")) << json->out();
  holder->write("\n");
  ends(*holder, 0);
  EXPECT_TRUE(watch->wait_for_out("- job  exclusive  holding  web-1  token 1  - waiting  held\n"))
      << watch->out() << watch->err();
  watch->kill(SIGINT);
  const auto status = watch->wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGINT);
  EXPECT_EQ(watch->err(), "");
}

TEST_F(CliLock, control_characters_of_others_do_not_reach_the_terminal) {
  const std::string second_set =
      "\xc2\x9b"
      "31m";
  auto holder = hold("job", "echo ready; read line", {"--metadata", "why=\x1b" + second_set});
  EXPECT_NE(baton({"lock", "show", "job"}).out.find("why=\\u001b\\u009b31m"), std::string::npos);
  const auto json = baton({"lock", "show", "job", "--json"}).out;
  EXPECT_NE(json.find("\"why\":\"\\u001b\\u009b31m\""), std::string::npos) << json;
}

}  // namespace
}  // namespace baton::test
