// Consumers that are killed and stopped: exactly one effect of each event, whatever dies.

#include "consumer_fixture.h"

#include <csignal>

#include "support/process.h"

namespace baton::test {
namespace {

class ConsumerProcess : public ConsumerTest {
 protected:
  std::unique_ptr<Process> start(const std::string& fault, Millis shift = Millis{0}) {
    auto process = std::make_unique<Process>(
        ProcessOptions{.argv = {BATON_CONSUMER_PROCESS, broker_url(), service_->url(), fault,
                                (dir_ / "struck").string(), std::to_string(shift.count())}});
    EXPECT_TRUE(process->wait_for_out("ready"));
    return process;
  }
  static void expect_killed(Process& process) {
    const auto status = process.wait();
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->signal, SIGKILL) << process.err();
  }
  static void expect_clean_end(Process& process) {
    process.close_stdin();
    const auto status = process.wait();
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(status->success()) << process.err();
  }
  // All are done, each with one effect.
  void expect_one_effect_each(int events) {
    const std::string all = std::to_string(events);
    EXPECT_TRUE(ask_until("SELECT count(*) FROM processed_events WHERE outcome = 'done'", all));
    EXPECT_EQ(ask("SELECT count(*) FROM effects"), all);
    EXPECT_EQ(ask("SELECT count(DISTINCT event_id) FROM effects"), all);
    EXPECT_EQ(ask("SELECT count(*) FROM inbox_events"), "0");
  }
  void publish_some(int count) {
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) events.push_back(event());
    publish(events);
  }
  // Everything was acknowledged.
  bool queue_is_empty() {
    return poll_until([&] {
      const auto queues = broker_->queues({.queues = {{"q"}}}, BootClock::now() + patience);
      return queues && queues->front().ready + queues->front().unsettled == 0;
    });
  }
};

TEST_F(ConsumerProcess, killed_between_the_handler_and_the_commit_it_has_one_effect_each) {
  publish_some(5);
  auto first = start("kill_in_handler");
  expect_killed(*first);
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "0");
  auto second = start("none");
  expect_one_effect_each(5);
  EXPECT_TRUE(queue_is_empty());
  expect_clean_end(*second);
}

TEST_F(ConsumerProcess, killed_between_the_commit_and_the_acknowledgement_it_has_one_effect_each) {
  publish_some(5);
  auto first = start("kill_before_ack");
  expect_killed(*first);
  EXPECT_NE(ask("SELECT count(*) FROM effects"), "0");
  auto second = start("none");
  expect_one_effect_each(5);
  EXPECT_TRUE(queue_is_empty());
  expect_clean_end(*second);
}

TEST_F(ConsumerProcess, an_event_that_kills_every_process_ends_as_dead) {
  const Event deadly = event("deadly");
  publish({event(), deadly, event()});
  const std::string status = "SELECT status FROM inbox_events WHERE event_id = '" + deadly.id + "'";
  int deaths = 0;
  for (; deaths < 20 && ask(status) != "DEAD"; ++deaths) {
    auto process = start("kill_deadly", std::chrono::hours{deaths});
    ASSERT_TRUE(poll_until([&] { return !process->running() || ask(status) == "DEAD"; }));
    if (process->running()) expect_clean_end(*process);
  }
  EXPECT_EQ(ask(status), "DEAD");
  EXPECT_LE(deaths, 8);  // three deliveries, two retries, and the one that gives up
  auto last = start("none", std::chrono::hours{30});
  EXPECT_TRUE(ask_until("SELECT count(*) FROM processed_events WHERE outcome = 'done'", "2"));
  EXPECT_EQ(ask("SELECT count(*) FROM effects WHERE what = 'effect'"), "2");
  EXPECT_EQ(ask("SELECT count(*) FROM effects WHERE what = 'given up'"), "1");
  expect_clean_end(*last);
}

TEST_F(ConsumerProcess, giving_up_and_compensating_are_one_transaction_under_sigkill) {
  publish_some(1);
  auto first = start("kill_in_hook");
  expect_killed(*first);
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "0");
  EXPECT_EQ(ask("SELECT status FROM inbox_events"), "RETRY");
  EXPECT_EQ(ask("SELECT outcome FROM processed_events"), "retrying");
  auto second = start("kill_in_hook", std::chrono::hours{1});
  EXPECT_TRUE(ask_until("SELECT status FROM inbox_events", "DEAD"));
  EXPECT_EQ(ask("SELECT outcome FROM processed_events"), "dead");
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "1");
  EXPECT_EQ(ask("SELECT what FROM effects"), "given up");
  expect_clean_end(*second);
}

TEST_F(ConsumerProcess, an_event_whose_hook_kills_the_process_leaves_the_others_their_retries) {
  publish({event("deadly")});
  for (int hours = 0; hours < 2; ++hours) {  // after the last retry, and at the claim
    auto process = start("kill_deadly_hook", std::chrono::hours{hours});
    expect_killed(*process);
  }
  EXPECT_EQ(ask("SELECT status FROM inbox_events"), "RETRY");
  publish({event("late")});
  auto last = start("kill_deadly_hook", std::chrono::hours{1});
  EXPECT_TRUE(ask_until("SELECT count(*) FROM processed_events WHERE outcome = 'done'", "1"));
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "1");
  expect_clean_end(*last);
}

TEST_F(ConsumerProcess, stopped_past_its_lease_before_the_acknowledgement_it_adds_no_effect) {
  publish_some(5);
  auto first = start("stop_before_ack");
  ASSERT_TRUE(poll_until([&] { return ask("SELECT count(*) FROM effects") != "0"; }));
  auto second = start("none");
  expect_one_effect_each(5);
  EXPECT_TRUE(queue_is_empty());
  first->kill(SIGCONT);
  expect_clean_end(*first);
  expect_clean_end(*second);
  expect_one_effect_each(5);
}

TEST_F(ConsumerProcess, stopped_in_its_handler_past_its_lease_it_adds_no_effect) {
  if (!service_->can_go_away()) GTEST_SKIP() << "it stops the writers of an SQLite file";
  publish_some(3);
  auto first = start("stop_in_handler");
  ASSERT_TRUE(poll_until([&] { return std::filesystem::exists(dir_ / "struck"); }));
  auto second = start("none");
  // The server ends the session of the stopped one.
  expect_one_effect_each(3);
  first->kill(SIGCONT);
  EXPECT_TRUE(queue_is_empty());
  expect_clean_end(*first);
  expect_clean_end(*second);
  expect_one_effect_each(3);
}

TEST_F(ConsumerProcess, on_sqlite_a_process_whose_handler_overruns_ends) {
  if (service_->can_go_away()) GTEST_SKIP() << "PostgreSQL closes its connection";
  publish_some(1);
  auto process = start("sleep_in_handler");
  const auto status = process->wait();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 70);
  EXPECT_NE(process->err().find("took longer than 500 ms"), std::string::npos);
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "0");
  auto second = start("none");
  expect_one_effect_each(1);
  expect_clean_end(*second);
}

}  // namespace
}  // namespace baton::test
