// baton job and baton node, with a replica that has jobs.

#include <sqlite3.h>

#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class CliJob : public CliTest {
 protected:
  void start_replica(const std::vector<std::string>& settings) {
    ProcessOptions options;
    options.argv = {BATON_JOB_REPLICA, "url=" + store(), "node=node-a",
                    "history=" + (dir_ / "history").string()};
    options.argv.insert(options.argv.end(), settings.begin(), settings.end());
    replica_ = std::make_unique<Process>(std::move(options));
    ASSERT_TRUE(replica_->wait_for_out("ready")) << replica_->err();
  }
  bool shows(const Words& words, const std::string& part) {
    return poll_until([&] { return baton(words).out.find(part) != std::string::npos; }, patience,
                      50ms);
  }
  void sql(const char* statement) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ / "locks.db").c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 10'000);
    EXPECT_EQ(sqlite3_exec(database, statement, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  std::unique_ptr<Process> replica_;
};

TEST_F(CliJob, lists_and_shows_what_jobs_do) {
  EXPECT_EQ(baton({"job", "list"}).out, "no scheduler has registered a job\n");
  EXPECT_EQ(baton({"job", "list", "--json"}).out, "{\"jobs\":[]}\n");
  start_replica({"names=order-observer-poll,wes-observer-poll", "every=3600000", "run=20"});
  EXPECT_TRUE(shows({"job", "list"}, "ok"));
  const auto list = baton({"job", "list"});
  EXPECT_EQ(list.status.code, 0);
  EXPECT_EQ(list.out.find("JOB"), 0U);
  for (const auto* part : {"order-observer-poll", "wes-observer-poll", "waiting",
                           "1h after the end", "node-a", "in 59m"}) {
    EXPECT_NE(list.out.find(part), std::string::npos) << part << "\n" << list.out;
  }
  EXPECT_TRUE(shows({"job", "show", "wes-observer-poll", "--json"}, "\"result\":\"ok\""));
  const auto show = baton({"job", "show", "wes-observer-poll"});
  for (const auto* part : {"fire 1 on node-a", "ok after", "next run", "1h after the end"}) {
    EXPECT_NE(show.out.find(part), std::string::npos) << part << "\n" << show.out;
  }
  const auto json = baton({"job", "show", "wes-observer-poll", "--json"}).out;
  for (const auto* part :
       {"\"name\":\"wes-observer-poll\"", "\"state\":\"waiting\"", "\"paused\":false",
        "\"next\":\"20", "\"last\":{\"fire\":1,", "\"duration_ms\":", "\"node\":\"node-a\""}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

TEST_F(CliJob, pause_run_skip_and_resume_reach_the_replica) {
  start_replica({"names=report", "every=3600000", "run=1"});
  EXPECT_TRUE(shows({"job", "show", "report"}, "fire 1 on node-a"));
  EXPECT_EQ(baton({"job", "pause", "report"}).out, "report is paused on every node\n");
  EXPECT_TRUE(shows({"job", "list"}, "paused"));
  const auto run = baton({"job", "run", "report", "--wait", "30s"});
  EXPECT_EQ(run.status.code, 0) << run.err;
  EXPECT_EQ(run.out.rfind("report: fire 2 on node-a: ok after ", 0), 0U) << run.out;
  EXPECT_NE(baton({"job", "skip", "report", "--json"}).out.find("\"skip_requests\":1"),
            std::string::npos);
  EXPECT_EQ(baton({"job", "resume", "report"}).out, "report goes on\n");
  EXPECT_TRUE(shows({"job", "show", "report"}, "skipped"));
}

TEST_F(CliJob, what_others_wrote_into_the_store_does_not_reach_the_terminal_as_it_is) {
  start_replica({"names=report", "every=3600000", "run=1"});
  EXPECT_TRUE(shows({"job", "show", "report"}, "fire 1 on node-a"));
  replica_->close_stdin();
  ASSERT_TRUE(replica_->wait());
  auto run = start({"job", "run", "report", "--wait", "30s"});
  EXPECT_TRUE(shows({"job", "show", "report", "--json"}, "\"run_requests\":1"));
  // As if a node of a strange name had done it.
  sql(R"(UPDATE baton_lock SET doc = replace(replace(doc, '\"runs\":1', '\"runs\":0'),
                                             'node-a', 'node\\u001b[31m'))");
  ends(*run, 0);
  EXPECT_EQ(run->out().rfind("report: fire 1 on node\\u001b[31m: ok after ", 0), 0U) << run->out();
}

TEST_F(CliJob, an_unknown_job_is_refused_with_the_nearest_one) {
  start_replica({"names=nightly-report", "every=3600000"});
  EXPECT_TRUE(shows({"job", "list"}, "nightly-report"));
  for (const auto* verb : {"show", "pause", "resume", "run", "skip", "forget"}) {
    refuses({"job", verb, "nigthly-report"}, 2, "bad_request", "did you mean 'nightly-report'?");
  }
  refuses({"job", "run", "nightly-report", "--wait", "soon"}, 2, "bad_request", "--wait");
  refuses({"job", "stop", "nightly-report"}, 2, "usage", "unknown command 'stop'");
}

TEST_F(CliJob, a_job_that_no_node_has_any_more_is_gone_and_can_be_forgotten) {
  start_replica({"names=kept,old", "every=3600000", "run=1"});
  EXPECT_TRUE(shows({"job", "show", "old"}, "fire 1 on node-a"));
  EXPECT_TRUE(shows({"job", "show", "old", "--json"}, "\"nodes\":[\"node-a\"]"));
  refuses({"job", "forget", "old"}, 75, "busy",
          "job 'old' is on the live node node-a; remove it from the configuration");
  replica_->close_stdin();
  ASSERT_TRUE(replica_->wait());
  start_replica({"names=kept", "every=3600000", "run=1"});
  EXPECT_TRUE(shows({"job", "show", "kept"}, "waiting"));
  const auto list = baton({"job", "list"}).out;
  EXPECT_LT(list.find("kept"), list.find("old")) << "those that are gone come last";
  const auto gone = baton({"job", "show", "old"}).out;
  for (const auto* part : {"gone", "none; `baton job forget old` clears what is left"}) {
    EXPECT_NE(gone.find(part), std::string::npos) << part << "\n" << gone;
  }
  EXPECT_EQ(baton({"job", "forget", "old", "--json"}).out,
            "{\"name\":\"old\",\"forgotten\":true}\n");
  refuses({"job", "show", "old"}, 2, "bad_request", "no scheduler has registered a job 'old'");
  replica_->close_stdin();
  ASSERT_TRUE(replica_->wait());
  EXPECT_EQ(baton({"job", "forget", "kept"}).out, "kept is forgotten\n");
  EXPECT_EQ(baton({"job", "list"}).out, "no scheduler has registered a job\n");
}

TEST_F(CliJob, node_list_shows_who_is_there_and_who_vanished) {
  EXPECT_EQ(baton({"node", "list"}).out, "no nodes\n");
  start_replica({"node_ttl=1000"});
  const auto list = baton({"node", "list"});
  EXPECT_EQ(list.out.find("NODE"), 0U);
  EXPECT_NE(list.out.find("node-a"), std::string::npos);
  EXPECT_NE(list.out.find("alive"), std::string::npos);
  EXPECT_NE(list.out.find(std::to_string(replica_->pid())), std::string::npos) << list.out;
  replica_->kill(SIGKILL);
  EXPECT_TRUE(shows({"node", "list"}, "gone"));
  EXPECT_TRUE(shows({"node", "list", "--json"}, "\"id\":\"node-a\",\"alive\":false"));
  EXPECT_EQ(baton({"node", "list", "--live", "--json"}).out, "{\"nodes\":[]}\n");
}

}  // namespace
}  // namespace baton::test
