// `baton elect` and `baton leader` as real processes on SQLite.

#include <optional>

#include "integration/cli/elect_support.h"
#include "support/frozen.h"
#include "support/http_client.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class CliElect : public ElectTest {};

TEST_F(CliElect, one_replica_alone_leads_and_leads_again_after_a_restart) {
  auto first = stand("pod-1", kSay, {"--ttl", "1s"});
  ASSERT_TRUE(leads(*first)) << first->err();
  first->kill(SIGKILL);
  ASSERT_TRUE(first->wait());
  auto restarted = stand("pod-1", kSay, {"--ttl", "1s"});
  EXPECT_TRUE(leads(*restarted)) << restarted->err();
}

TEST_F(CliElect, two_replicas_fail_over_when_the_leader_is_killed) {
  auto a = stand("a", kSay, {"--ttl", "1s"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--ttl", "1s"});
  EXPECT_TRUE(waiting(1));
  EXPECT_EQ(b->out(), "") << "a follower does not work";
  a->kill(SIGKILL);
  EXPECT_TRUE(leads(*b)) << b->err();
}

TEST_F(CliElect, of_three_replicas_only_one_leads_and_the_command_knows_its_term) {
  const std::string script =
      "echo leads $BATON_TERM $BATON_TOKEN $BATON_NAME ${BATON_STORE:-nothing} $BATON_FENCE; "
      "exec sleep 1000";
  unset_store();
  std::vector<std::unique_ptr<Process>> all;
  for (const auto* node : {"a", "b", "c"}) {
    all.push_back(stand(node, script, {"--store", store()}));
    ASSERT_TRUE(poll_until([&] {
      return baton({"lock", "show", "leader/outbox", "--store", store(), "--json"})
                 .out.find("\"owner\":\"" + std::string(node)) != std::string::npos;
    }));
  }
  ASSERT_TRUE(leads(*all[0]));
  EXPECT_TRUE(
      all[0]->wait_for_out("leads 1 1 DEFAULT:leader:outbox nothing "
                           R"([{"name":"DEFAULT:leader:outbox","mode":"X","token":"1"}])"
                           "\n"))
      << all[0]->out();
  EXPECT_EQ(all[1]->out() + all[2]->out(), "");
  EXPECT_TRUE(all[1]->wait_for_err("outbox is led by a in term 1; waiting")) << all[1]->err();
}

TEST_F(CliElect, a_follower_shows_that_it_waits_and_a_leader_that_it_leads) {
  auto a = stand("a", kSay);
  ASSERT_TRUE(leads(*a));
  auto b = stand("b", kSay, {"--metrics", "127.0.0.1:0"});
  constexpr std::string_view kSaid = "metrics on http://127.0.0.1:";
  ASSERT_TRUE(b->wait_for_err("/metrics\n")) << b->err();
  const std::string err = b->err();
  const int port = std::atoi(err.c_str() + err.find(kSaid) + kSaid.size());
  const auto shows = [&](const std::string& metric) {
    return poll_until([&] {
      const auto answer = http(port, {.path = "/metrics"});
      const auto found = answer ? answer->body.find("\nbaton_lock_" + metric + "{") : 0;
      if (!answer || found == std::string::npos) return false;
      const auto line = answer->body.substr(found + 1, answer->body.find('\n', found + 1) - found);
      return line.find("subject=\"leader\"} 1\n") != std::string::npos;
    });
  };
  EXPECT_TRUE(shows("queue_length"));
  a->kill(SIGTERM);
  ASSERT_TRUE(leads(*b));
  EXPECT_TRUE(shows("active"));
}

TEST_F(CliElect, a_graceful_shutdown_hands_over_at_once) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a));
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  a->kill(SIGTERM);
  ends(*a, 0);
  EXPECT_TRUE(leads(*b)) << "long before the TTL";
  b->kill(SIGTERM);
  ends(*b, 0);
}

TEST_F(CliElect, different_elections_have_leaders_of_their_own) {
  auto outbox = stand("a", kSay, {}, "outbox");
  auto views = stand("b", kSay, {}, "views/orders");
  EXPECT_TRUE(leads(*outbox) && leads(*views));
  EXPECT_NE(shown("outbox").find("\"node\":\"a\""), std::string::npos);
  EXPECT_NE(shown("views/orders").find("\"node\":\"b\""), std::string::npos);
  EXPECT_NE(baton({"lock", "find", "--subject", "leader"}).out.find("leader/views/orders"),
            std::string::npos);
}

TEST_F(CliElect, a_paused_leader_cannot_write_over_its_successor) {
  WorkTable table(dir_ / "work.db");
  auto a = writer("a", "1s");
  ASSERT_TRUE(a->wait_for_out("writes ")) << a->err();
  auto b = writer("b", "1s");
  EXPECT_TRUE(waiting(1));
  // The whole machine stands still, as after a suspend; else the watcher would end the work.
  const pid_t watcher = child_of(a->pid());
  ASSERT_GT(watcher, 0);
  const pid_t work = child_of(watcher);
  ASSERT_GT(work, 0);
  pause(a->pid(), dir_ / "locks.db");
  std::optional<Frozen> still(std::in_place, watcher);
  ASSERT_TRUE(*still);
  pause(work, dir_ / "work.db");
  ASSERT_TRUE(b->wait_for_out("writes ")) << b->err();
  // Its work wakes up first, and does not know yet.
  ASSERT_EQ(::kill(work, SIGCONT), 0);
  EXPECT_TRUE(a->wait_for_out("refused ")) << a->out();
  still.reset();
  a->kill(SIGCONT);
  EXPECT_TRUE(a->wait_for_err("no longer leading outbox")) << a->err();
  EXPECT_EQ(table.late_rows(), 0);
  EXPECT_EQ(table.leaders_of_one_term(), 1);
  EXPECT_GT(table.last_term(), 0);
  // And it stands again.
  EXPECT_TRUE(waiting(1));
  b->kill(SIGKILL);
  EXPECT_TRUE(poll_until([&] { return count(a->out(), "writes ") == 2; })) << a->err();
}

TEST_F(CliElect, the_command_is_ended_on_loss_and_started_again_when_leadership_returns) {
  auto a = stand("a",
                 "trap 'echo told; exit 0' TERM; echo leads $BATON_TERM; "
                 "while :; do sleep 0.02; done");
  ASSERT_TRUE(leads(*a)) << a->err();
  EXPECT_EQ(baton({"lock", "break", "leader/outbox", "--reason", "test"}).status.code, 0);
  EXPECT_TRUE(poll_until([&] { return count(a->out(), "leads ") == 2; })) << a->err();
  EXPECT_NE(a->out().find("told"), std::string::npos);
  EXPECT_NE(a->err().find("revoked: test"), std::string::npos) << a->err();
}

TEST_F(CliElect, what_ignores_the_loss_is_killed) {
  auto a = stand("a", "trap '' TERM; echo leads; while :; do sleep 0.02; done",
                 {"--ttl", "5s", "--grace", "100ms"});
  ASSERT_TRUE(a->wait_for_out("leads\n"));
  EXPECT_EQ(baton({"leader", "resign", "outbox"}).status.code, 0);
  EXPECT_TRUE(poll_until([&] { return count(a->out(), "leads\n") == 2; })) << a->err();
}

TEST_F(CliElect, a_command_that_ends_by_itself_ends_the_candidacy_with_its_code) {
  auto a = stand("a", "echo leads; read line; exit 42", {"--ttl", "1h"});
  ASSERT_TRUE(a->wait_for_out("leads"));
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  a->write("\n");
  ends(*a, 42);
  EXPECT_TRUE(leads(*b)) << "it has resigned";
}

TEST_F(CliElect, restart_starts_it_again_in_the_same_term) {
  auto a = stand("a", "echo leads $BATON_TERM; exit 3", {"--restart"});
  EXPECT_TRUE(poll_until([&] { return count(a->out(), "leads 1\n") >= 2; })) << a->err();
  a->kill(SIGTERM);
  const auto status = a->wait();
  ASSERT_TRUE(status);
  EXPECT_NE(status->code, 0);
  EXPECT_NE(baton({"leader", "show", "outbox"}).status.code, 0) << "resigned";
}

TEST_F(CliElect, a_signal_ends_the_wait_of_a_follower) {
  auto a = stand("a");
  ASSERT_TRUE(leads(*a));
  auto b = stand("b");
  EXPECT_TRUE(waiting(1));
  b->kill(SIGTERM);
  ends(*b, 128 + SIGTERM);
  EXPECT_TRUE(waiting(0));
}

TEST_F(CliElect, signals_are_passed_on) {
  auto a = stand("a", "trap 'echo got it; exit 5' USR1; echo leads; while :; do sleep 0.02; done");
  ASSERT_TRUE(a->wait_for_out("leads"));
  a->kill(SIGUSR1);
  ends(*a, 5);
  EXPECT_NE(a->out().find("got it"), std::string::npos);
}

TEST_F(CliElect, resign_hands_over_to_the_next_and_says_so) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a));
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  const auto resigned = baton({"leader", "resign", "outbox", "--reason", "kernel update"});
  EXPECT_EQ(resigned.status.code, 0) << resigned.err;
  EXPECT_NE(resigned.out.find("outbox: a in term 1 has gone, followed by b in term "),
            std::string::npos)
      << resigned.out;
  EXPECT_TRUE(leads(*b));
  EXPECT_TRUE(a->wait_for_err("kernel update")) << a->err();
  EXPECT_TRUE(waiting(1)) << "it stands again, behind the others";
}

TEST_F(CliElect, transfer_hands_over_to_the_named_node) {
  auto a = stand("a", kSay, {"--ttl", "1h"});
  ASSERT_TRUE(leads(*a));
  auto b = stand("b", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(1));
  auto c = stand("c", kSay, {"--ttl", "1h"});
  EXPECT_TRUE(waiting(2));
  refuses({"leader", "transfer", "outbox", "d"}, 1, "denied", "'d' does not wait to lead");
  const auto moved = baton({"leader", "transfer", "outbox", "c", "--json"});
  EXPECT_EQ(moved.status.code, 0) << moved.err;
  EXPECT_NE(moved.out.find(R"("before":{"node":"a")"), std::string::npos) << moved.out;
  EXPECT_NE(moved.out.find(R"("leader":{"node":"c")"), std::string::npos) << moved.out;
  EXPECT_TRUE(leads(*c));
  EXPECT_EQ(b->out(), "");
}

TEST_F(CliElect, show_tells_who_leads_and_75_says_that_nobody_does) {
  const auto nobody = baton({"leader", "show", "outbox"});
  EXPECT_EQ(nobody.status.code, 75);
  EXPECT_EQ(nobody.out, "outbox: nobody leads\n");
  EXPECT_EQ(baton({"leader", "show", "outbox", "--json"}).out,
            "{\"election\":\"outbox\",\"leader\":null}\n");
  EXPECT_EQ(baton({"leader", "resign", "outbox"}).status.code, 75);
  EXPECT_EQ(baton({"leader", "transfer", "outbox", "x"}).status.code, 75);
  auto a = stand("a");
  ASSERT_TRUE(leads(*a));
  const auto text = baton({"leader", "show", "outbox"});
  EXPECT_EQ(text.status.code, 0);
  EXPECT_EQ(text.out.rfind("outbox: a in term 1, since 2", 0), 0U) << text.out;
  EXPECT_NE(text.out.find("0 waiting"), std::string::npos) << text.out;
}

TEST_F(CliElect, a_replica_of_a_higher_priority_takes_over_if_it_preempts) {
  auto a = stand("a", kSay, {"--priority", "1"});
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, {"--priority", "2", "--preempt"});
  EXPECT_TRUE(leads(*b)) << b->err();
  EXPECT_TRUE(led_by("b"));
  EXPECT_TRUE(waiting(1)) << "the other one stands on";
}

TEST_F(CliElect, a_leader_whose_health_command_fails_hands_over) {
  const auto sick = dir_ / "sick";
  const Words healthy{"--ttl", "2s", "--healthy-if", "test ! -e " + sick.string()};
  auto a = stand("a", kSay, healthy);
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b");
  EXPECT_TRUE(waiting(1));
  std::ofstream(sick) << "ill";
  EXPECT_TRUE(leads(*b)) << b->err();
  EXPECT_TRUE(a->wait_for_err("not fit to lead: the health command ended with 1")) << a->err();
  EXPECT_TRUE(waiting(0)) << "it does not stand while it is ill";
  std::filesystem::remove(sick);
  EXPECT_TRUE(waiting(1));
}

TEST_F(CliElect, a_health_command_that_hangs_has_failed_and_is_killed) {
  auto a = stand("a", kSay, {"--ttl", "1s", "--healthy-if", "exec sleep 1000"});
  EXPECT_TRUE(a->wait_for_err("not fit to lead: the health c")) << a->err();
  EXPECT_EQ(a->out(), "");
  a->kill(SIGTERM);
  EXPECT_TRUE(a->wait()) << "it does not wait for the command";
}

TEST_F(CliElect, a_health_command_leaves_no_zombies_and_survives_the_end_of_a_term) {
  const auto checks = dir_ / "checks";
  auto a = stand("a", kSay,
                 {"--ttl", "1s", "--healthy-if",
                  "echo x >> " + checks.string() + "; sleep 1000 & sleep 0.05"});
  ASSERT_TRUE(leads(*a)) << a->err();
  const auto asked = [&] {
    std::ifstream file(checks);
    return std::count(std::istreambuf_iterator<char>(file), {}, 'x');
  };
  EXPECT_TRUE(poll_until([&] { return asked() >= 4; }));
  EXPECT_EQ(baton({"leader", "resign", "outbox"}).status.code, 0);
  EXPECT_TRUE(poll_until([&] { return asked() >= 7; }));
  EXPECT_EQ(a->err().find("not fit to lead"), std::string::npos) << a->err();
  std::size_t zombies = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream status(entry.path() / "status");
    std::string text((std::istreambuf_iterator<char>(status)), {});
    if (text.find("PPid:\t" + std::to_string(a->pid()) + "\n") != std::string::npos &&
        text.find("State:\tZ") != std::string::npos) {
      ++zombies;
    }
  }
  EXPECT_LE(zombies, 2U) << "of the check that is under way at most";
}

TEST_F(CliElect, a_full_disk_behind_stderr_does_not_keep_it_from_leading) {
  const std::string lead = std::string("exec '") + BATON_PROGRAM +
                           "' elect outbox --node a -- sh -c \"$1\" 2> /dev/full";
  auto options = this->options({});
  options.argv = {"sh", "-c", lead, "sh", kSay};
  Process a(options);
  ASSERT_TRUE(leads(a));
  a.kill(SIGTERM);
  ends(a, 0);
}

TEST_F(CliElect, who_never_leads_only_tells_who_does) {
  auto w = stand("w", kSay, {"--never-lead"});
  auto a = stand("a");
  ASSERT_TRUE(leads(*a)) << a->err();
  EXPECT_TRUE(w->wait_for_err("outbox is led by a")) << w->err();
  a->kill(SIGTERM);
  ASSERT_TRUE(a->wait());
  EXPECT_EQ(baton({"leader", "show", "outbox"}).status.code, 75);
  EXPECT_EQ(w->out(), "");
}

TEST_F(CliElect, is_me_tells_a_script_whether_this_node_leads) {
  EXPECT_EQ(baton({"leader", "is-me", "outbox", "--node", "a"}).status.code, 75);
  auto a = stand("a");
  ASSERT_TRUE(leads(*a)) << a->err();
  EXPECT_EQ(baton({"leader", "is-me", "outbox", "--node", "a"}).status.code, 0);
  EXPECT_EQ(baton({"leader", "is-me", "outbox", "--owner", "a"}).status.code, 0);
  const auto other = baton({"leader", "is-me", "outbox", "--node", "b", "--json"});
  EXPECT_EQ(other.status.code, 75);
  EXPECT_NE(other.out.find("\"leads\":false"), std::string::npos) << other.out;
  EXPECT_NE(baton({"leader", "is-me", "outbox"}).err.find("--node"), std::string::npos);
}

TEST_F(CliElect, a_readiness_probe_is_answered_by_who_leads) {
  const auto port_of = [](Process& process) {
    EXPECT_TRUE(process.wait_for_err("metrics on http://127.0.0.1:")) << process.err();
    const std::string said = process.err();
    return std::stoi(said.substr(said.find("127.0.0.1:") + 10));
  };
  const Words metrics{"--metrics", "127.0.0.1:0"};
  auto a = stand("a", kSay, metrics);
  ASSERT_TRUE(leads(*a)) << a->err();
  auto b = stand("b", kSay, metrics);
  EXPECT_TRUE(waiting(1));
  EXPECT_EQ(http(port_of(*a), {.path = "/leader"})->status, 200);
  EXPECT_EQ(http(port_of(*b), {.path = "/leader"})->status, 503);
}

TEST_F(CliElect, bad_input_is_refused_in_one_line) {
  refuses({"elect", "outbox"}, 2, "bad_request", "say what to run");
  refuses({"elect", "", "--", "true"}, 2, "bad_name", "election");
  refuses({"elect", "outbox", "--ttl", "soon", "--", "true"}, 2, "bad_request", "--ttl");
  refuses({"elect", "outbox", "--ttl", "1ms", "--", "true"}, 2, "bad_request", "TTL");
  refuses({"elect", "outbox", "--", "no-such-command"}, 127, "not_found", "command not found");
  refuses({"leader", "show", "a//b"}, 2, "bad_name", "a//b");
  refuses({"leader", "transfer", "outbox"}, 2, "usage", "NODE");
  refuses({"leader", "who"}, 2, "usage", "unknown command 'who'");
}

TEST_F(CliElect, every_command_has_help_and_completions) {
  for (const Words& command :
       {Words{"elect"}, Words{"leader"}, Words{"leader", "show"}, Words{"leader", "is-me"},
        Words{"leader", "resign"}, Words{"leader", "transfer"}}) {
    Words words = command;
    words.emplace_back("--help");
    const auto help = baton(words);
    EXPECT_EQ(help.status.code, 0);
    EXPECT_NE(help.out.find("Usage: baton " + command[0]), std::string::npos) << help.out;
  }
  EXPECT_NE(baton({"elect", "--help"}).out.find("-- CMD"), std::string::npos);
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    EXPECT_NE(baton({"completion", shell}).out.find("transfer"), std::string::npos) << shell;
  }
}

TEST_F(CliElect, with_json_every_event_is_one_object_on_stderr) {
  auto a = stand("a", kSay, {"--json"});
  ASSERT_TRUE(leads(*a));
  EXPECT_TRUE(a->wait_for_err(R"({"event":"elected","election":"outbox","term":1})")) << a->err();
}

class Fleet : public ElectTest {
 protected:
  // Long enough for a command that was killed with its baton, in the middle of a slow fsync, to go.
  static constexpr const char* kTtl = "3s";

  void SetUp() override {
    for (int i = 0; i < 5; ++i) {
      const std::string node = "n" + std::to_string(i);
      fleet_[node] = writer(node, kTtl);
    }
  }

  // The node that leads, once a later term than `term` has written.
  std::string next_leader(std::int64_t& term) {
    EXPECT_TRUE(poll_until([&] { return table_.last_term() > term; }, 2 * patience));
    term = table_.last_term();
    std::string leader;
    EXPECT_TRUE(poll_until([&] {
      const std::string text = shown();
      for (const auto& [node, process] : fleet_) {
        if (text.find("\"node\":\"" + node + "\"") != std::string::npos) leader = node;
      }
      return !leader.empty();
    }));
    return leader;
  }

  WorkTable table_{dir_ / "work.db"};
  std::map<std::string, std::unique_ptr<Process>> fleet_;
};

TEST_F(Fleet, whose_leaders_are_killed_never_has_two_at_work_and_goes_on) {
  std::int64_t term = 0;
  for (int round = 0; round < 6; ++round) {
    const std::string leader = next_leader(term);
    ASSERT_FALSE(leader.empty());
    fleet_[leader] = writer(leader, kTtl);  // the old one is killed first
  }
  next_leader(term);
  EXPECT_EQ(table_.together(), 0) << "two commands lived at once";
  EXPECT_EQ(table_.late_rows(), 0) << "a term wrote after a later one";
  EXPECT_EQ(table_.leaders_of_one_term(), 1);
}

TEST_F(Fleet, whose_leaders_are_paused_past_the_ttl_never_has_two_at_work) {
  std::int64_t term = 0;
  for (int round = 0; round < 2; ++round) {
    const std::string leader = next_leader(term);
    ASSERT_FALSE(leader.empty());
    pause(fleet_[leader]->pid(), dir_ / "locks.db");
    EXPECT_TRUE(poll_until([&] { return table_.last_term() > term; }, 2 * patience));
    fleet_[leader]->kill(SIGCONT);
  }
  next_leader(term);
  EXPECT_EQ(table_.together(), 0) << "two commands lived at once";
  EXPECT_EQ(table_.late_rows(), 0) << "a term wrote after a later one";
}

TEST_F(Fleet, whose_leaders_are_paused_past_the_ttl_is_kept_in_order_by_the_fence) {
  std::int64_t term = 0;
  for (int round = 0; round < 4; ++round) {
    const std::string leader = next_leader(term);
    ASSERT_FALSE(leader.empty());
    // Only baton and its watcher stand still: the command goes on, and is refused once the next
    // term has written.
    const pid_t watcher = child_of(fleet_[leader]->pid());
    ASSERT_GT(watcher, 0);
    pause(fleet_[leader]->pid(), dir_ / "locks.db");
    std::optional<Frozen> still(std::in_place, watcher);
    ASSERT_TRUE(*still);
    EXPECT_TRUE(poll_until([&] { return table_.last_term() > term; }, 2 * patience));
    EXPECT_TRUE(
        poll_until([&] { return fleet_[leader]->out().find("refused") != std::string::npos; }));
    still.reset();
    fleet_[leader]->kill(SIGCONT);
  }
  next_leader(term);
  EXPECT_EQ(table_.late_rows(), 0) << "a term wrote after a later one";
  EXPECT_EQ(table_.leaders_of_one_term(), 1);
}

}  // namespace
}  // namespace baton::test
