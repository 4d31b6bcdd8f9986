// Ordered consumers: the events of an aggregate one after another, whatever happens.

#include "consumer_fixture.h"

#include <map>
#include <random>
#include <set>

#include <libpq-fe.h>
#include <sqlite3.h>

#include "event/message_headers.h"
#include "inbox/operate.h"
#include "support/seed.h"

namespace baton::test {
namespace {

using Kind = ConsumerNote::Kind;

class ConsumerOrdered : public ConsumerTest {
 protected:
  ConsumerOrdered() {
    const bool postgres = database_->postgres() != nullptr;
    database_
        ->script(std::string("CREATE TABLE handled (n ") +
                 (postgres ? "bigint GENERATED ALWAYS AS IDENTITY"
                           : "INTEGER PRIMARY KEY AUTOINCREMENT") +
                 ", aggregate TEXT, number INTEGER)")
        .value();
    broker_->declare(with_lanes(ordered().topology, "lanes"), BootClock::now() + patience).value();
  }

  ConsumerOptions ordered() {
    ConsumerOptions with = options();
    with.name = "ordered";
    with.queue = "lanes";
    with.ordered = true;
    with.topology = {.exchanges = {{"documents"}},
                     .queues = {{"lanes"}},
                     .bindings = {{"documents", "#", "lanes", {}}}};
    with.handler_timeout = Millis{20'000};
    return with;
  }

  static int number_of(const Handling& handling) {
    return std::stoi(handling.event().headers.at("number"));
  }

  static void note_handled(const Handling& handling) {
    const std::string sql = "INSERT INTO handled (aggregate, number) VALUES ('" +
                            handling.event().aggregate + "', " +
                            std::to_string(number_of(handling)) + ")";
    if (handling.postgres() != nullptr) {
      PQclear(PQexec(handling.postgres(), sql.c_str()));
    } else {
      sqlite3_exec(handling.sqlite(), sql.c_str(), nullptr, nullptr, nullptr);
    }
  }

  // The numbers of the events of each aggregate, as they were handled: "a 1 2 3, b 1".
  std::string handled() {
    std::map<std::string, std::string> all;
    const auto rows = database_->query("SELECT aggregate, number FROM handled ORDER BY n").value();
    for (const auto& row : rows) all[row.text(0)] += " " + std::to_string(row.integer(1));
    std::string text;
    for (const auto& [aggregate, numbers] : all) {
      text += (text.empty() ? "" : ", ") + aggregate + numbers;
    }
    return text;
  }

  bool handled_until(const std::string& expected) {
    return poll_until([&] { return handled() == expected; });
  }

  // The next event of the aggregate.
  Message next(const std::string& aggregate) {
    Event one = event(aggregate);
    one.headers["number"] = std::to_string(++numbers_[aggregate]);
    return event::to_message({.event = one, .lane = aggregate.front() % kLanes, .position = 17});
  }

  std::map<std::string, int> numbers_;
};

TEST_F(ConsumerOrdered, the_followers_of_a_failed_event_wait_for_it_and_no_others_do) {
  publish({next("a"), next("a"), next("b"), next("a"), next("b"), next("a")});
  std::atomic<bool> broken{true};
  consume(ordered(), [&](Handling& handling) {
    if (broken && handling.event().aggregate == "a" && number_of(handling) == 2) {
      return failed("not now");
    }
    note_handled(handling);
    return done();
  });
  ASSERT_TRUE(handled_until("a 1, b 1 2"));
  ASSERT_TRUE(notes_.wait(Kind::held, 2));
  publish({next("a"), next("b")});
  ASSERT_TRUE(handled_until("a 1, b 1 2 3"));
  move_time(Millis{1'000});
  ASSERT_TRUE(notes_.wait(Kind::failed, 2));
  broken = false;
  move_time(Millis{30'000});
  ASSERT_TRUE(handled_until("a 1 2 3 4 5, b 1 2 3"));
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events"), "0");
}

TEST_F(ConsumerOrdered,
       behind_a_dead_letter_its_aggregate_waits_until_it_is_redriven_or_discarded) {
  publish({next("a"), next("a"), next("b"), next("b"), next("c")});
  auto with = ordered();
  with.max_retries = 0;
  std::atomic<bool> broken{true};
  consume(with, [&](Handling& handling) {
    const bool first = number_of(handling) == 1 && handling.event().aggregate != "c";
    if (broken && first) return failed("not now");
    note_handled(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::failed, 2));
  move_time(Millis{1'000});
  ASSERT_TRUE(notes_.wait(Kind::dead, 2));
  ASSERT_TRUE(ask_until("SELECT count(*) FROM inbox_events WHERE status = 'HELD'", "2"));
  EXPECT_EQ(handled(), "c 1");
  broken = false;
  const auto change = [&](inbox::Action action, const std::string& aggregate) {
    const outbox::EventFilter filter{.aggregate = aggregate};
    const auto count = inbox::count_events(*database_, action, filter, false).value();
    EXPECT_EQ(count.count, 1);
    return inbox::change_events(*database_, action, filter, count.last, false, {}).value();
  };
  EXPECT_EQ(change(inbox::Action::redrive, "a"), 1);
  move_time(Millis{1'000});
  ASSERT_TRUE(handled_until("a 1 2, c 1"));
  EXPECT_EQ(change(inbox::Action::discard, "b"), 1);
  ASSERT_TRUE(handled_until("a 1 2, b 2, c 1"));
}

// A process that dies right after it has subscribed, again and again, makes the broker give up on
// what it had prefetched.
TEST_F(ConsumerOrdered, what_the_broker_gave_up_on_comes_before_what_it_has_left) {
  publish({next("a"), next("a"), next("a")});
  {
    const std::string lane = lane_queue("lanes", 'a' % kLanes);
    auto subscription =
        broker_->subscribe(lane, {.prefetch = 1}, BootClock::now() + patience).value();
    for (int i = 0; i < 21; ++i) {
      const auto got = subscription->take(1, BootClock::now() + patience).value();
      ASSERT_EQ(got.size(), 1U);
      const Settlement back{got[0].tag, Settle::requeue};
      ASSERT_TRUE(subscription->settle({&back, 1}, BootClock::now() + patience));
    }
  }
  consume(ordered(), [&](Handling& handling) {
    note_handled(handling);
    return done();
  });
  ASSERT_TRUE(poll_until([&] { return ask("SELECT count(*) FROM handled") == "3"; }));
  EXPECT_EQ(handled(), "a 1 2 3");
}

TEST_F(ConsumerOrdered, replicas_that_come_and_go_and_fail_at_random_keep_the_order) {
  constexpr int kEvents = 25;
  const std::vector<std::string> aggregates{"a", "b", "q"};  // two of them share a lane
  const auto seed = seed_or(7);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::mutex mutex;
  std::mt19937_64 failures(seed + 1);
  auto with = ordered();
  with.max_retries = 100;
  with.breaker_after = 0;
  const auto handle = [&](Handling& handling) {
    note_handled(handling);
    const std::lock_guard lock(mutex);
    return failures() % 5 == 0 ? failed("at random") : done();
  };
  std::size_t published = 0;
  for (int round = 0; round < 200; ++round) {
    if (published < aggregates.size() * kEvents) {
      std::vector<Message> some;
      for (int i = 0; i < 5; ++i) some.push_back(next(aggregates[published++ % 3]));
      publish(some);
    }
    if (consumers_.size() < 2 || random() % 4 == 0) {
      if (consumers_.size() == 2) consumers_.erase(consumers_.begin());
      consume(with, handle);
    }
    move_time(Millis{10'000});
    const std::string left = ask("SELECT count(*) FROM handled");
    if (left == std::to_string(aggregates.size() * kEvents)) break;
    // Something happens, or the next round comes.
    (void)poll_until([&] { return ask("SELECT count(*) FROM handled") != left; }, Millis{200});
  }
  std::string expected;
  for (const auto& aggregate : aggregates) {
    expected += (expected.empty() ? "" : ", ") + aggregate;
    for (int i = 1; i <= kEvents; ++i) expected += " " + std::to_string(i);
  }
  EXPECT_TRUE(handled_until(expected)) << handled();
  EXPECT_TRUE(ask_until("SELECT count(*) FROM inbox_events", "0"));
}

}  // namespace
}  // namespace baton::test
