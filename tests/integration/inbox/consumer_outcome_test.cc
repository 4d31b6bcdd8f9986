// What becomes of a delivery, whatever its handler does.

#include "consumer_fixture.h"

#include <functional>
#include <future>
#include <map>
#include <stdexcept>
#include <thread>

#include <libpq-fe.h>
#include <sqlite3.h>

#include "inbox/session_failures.h"

namespace baton::test {
namespace {

using Kind = ConsumerNote::Kind;

class ConsumerOutcome : public ConsumerTest {
 protected:
  std::string effects() { return ask("SELECT count(*) FROM effects"); }
  std::string outcome(const Event& event) {
    return ask("SELECT outcome FROM processed_events WHERE event_id = '" + event.id + "'");
  }
  std::string row(const Event& event) {
    return ask("SELECT status || ' ' || retry_count FROM inbox_events WHERE event_id = '" +
               event.id + "'");
  }
  static void run(const Handling& handling, const char* sql) {
    if (handling.postgres() != nullptr) {
      PQclear(PQexec(handling.postgres(), sql));
    } else {
      sqlite3_exec(handling.sqlite(), sql, nullptr, nullptr, nullptr);
    }
  }
};

TEST_F(ConsumerOutcome, an_event_that_comes_twice_has_one_effect) {
  const Event one = event();
  publish({one, one, event()});
  consume([](Handling& handling) {
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed, 2));
  publish({one});
  ASSERT_TRUE(notes_.wait(Kind::skipped, 2));
  EXPECT_EQ(effects(), "2");
  EXPECT_EQ(outcome(one), "done");
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events"), "0");
}

TEST_F(ConsumerOutcome, a_handler_gets_the_event_and_its_message) {
  const Event one = event();
  std::atomic<bool> same{false};
  publish({one});
  consume([&](Handling& handling) {
    same = handling.event() == one && handling.message() == message(one) &&
           handling.attempt() == 1 && handling.deadline() > BootClock::now();
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_TRUE(same);
}

TEST_F(ConsumerOutcome, a_failed_event_is_tried_again_when_it_is_due) {
  const Event one = event();
  std::atomic<int> calls{0};
  publish({one});
  consume([&](Handling& handling) {
    write_effect(handling);
    EXPECT_EQ(handling.attempt(), calls + 1);
    return ++calls < 3 ? failed("the scanner is away") : done();
  });
  ASSERT_TRUE(notes_.wait(Kind::failed, 1));
  EXPECT_EQ(row(one), "RETRY 0");
  EXPECT_EQ(outcome(one), "retrying");
  EXPECT_EQ(effects(), "0");
  EXPECT_EQ(ask("SELECT last_error FROM inbox_events"), "the scanner is away");
  EXPECT_EQ(ask("SELECT payload || ' ' || position || ' ' || lane FROM inbox_events"),
            R"({"pages":3} 17 3)");
  move_time(Millis{1'000});
  ASSERT_TRUE(notes_.wait(Kind::failed, 2));
  EXPECT_EQ(row(one), "RETRY 1");
  move_time(Millis{2'000});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(row(one), "");
  EXPECT_EQ(outcome(one), "done");
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(calls, 3);
}

TEST_F(ConsumerOutcome, an_event_that_keeps_failing_ends_as_dead_with_the_hook) {
  const Event one = event();
  publish({one});
  auto with = options();
  with.on_give_up = [](Handling& handling) {
    write_effect(handling, "given up: " + std::string(handling.last_error()));
    handling.outbox().add({.type = "DocumentFailed", .aggregate = "doc-1"}).value();
  };
  consume(with, [](Handling&) -> Handled { throw std::runtime_error("no disk"); });
  for (int failures = 1; failures <= 5; ++failures) {
    ASSERT_TRUE(notes_.wait(Kind::failed, failures));
    move_time(Millis{10'000});
  }
  ASSERT_TRUE(notes_.wait(Kind::dead));
  EXPECT_EQ(row(one), "DEAD 5");
  EXPECT_EQ(outcome(one), "dead");
  EXPECT_EQ(ask("SELECT what FROM effects"), "given up: no disk");
  EXPECT_EQ(ask("SELECT type || ' ' || correlation_id FROM outbox_events"),
            "DocumentFailed request-7");
  EXPECT_EQ(ask("SELECT causation_id FROM outbox_events"), one.id);
  publish({one});
  ASSERT_TRUE(notes_.wait(Kind::skipped));
}

TEST_F(ConsumerOutcome, an_event_whose_hook_fails_stays_in_retry_until_it_succeeds) {
  const Event one = event();
  publish({one});
  std::atomic<int> hooks{0};
  auto with = options();
  with.max_retries = 0;
  with.on_give_up = [&](Handling& handling) {
    write_effect(handling, "given up");
    if (++hooks < 3) throw std::runtime_error("the hook is broken");
  };
  consume(with, [](Handling&) { return failed("no disk"); });
  ASSERT_TRUE(notes_.wait(Kind::failed));
  move_time(Millis{1'000});
  for (int times = 1; times <= 2; ++times) {
    ASSERT_TRUE(notes_.wait(Kind::hook_failed, times));
    EXPECT_EQ(row(one), "RETRY " + std::to_string(1 + times));
    EXPECT_EQ(effects(), "0");
    move_time(Millis{300'000});
  }
  ASSERT_TRUE(notes_.wait(Kind::dead));
  EXPECT_EQ(outcome(one), "dead");
  EXPECT_EQ(effects(), "1");
}

TEST_F(ConsumerOutcome, what_cannot_be_made_durable_before_the_commit_is_tried_again) {
  const Event one = event();
  publish({one});
  std::atomic<int> calls{0};
  auto with = options();
  with.before_commit = [&]() -> Result<void> {
    ++calls;
    if (calls == 1) return Error{.code = Code::unavailable, .message = "the disk is full"};
    if (calls == 2) throw std::runtime_error("the disk is away");
    return {};
  };
  consume(with, [](Handling& handling) {
    write_effect(handling);
    return done();
  });
  for (int failures = 1; failures <= 2; ++failures) {
    ASSERT_TRUE(notes_.wait(Kind::failed, failures));
    EXPECT_EQ(effects(), "0");
    EXPECT_EQ(row(one), "RETRY " + std::to_string(failures - 1));
    move_time(Millis{10'000});
  }
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(calls, 3);
}

TEST_F(ConsumerOutcome, a_business_error_is_recorded_with_what_was_written_and_never_retried) {
  const Event one = event();
  publish({one});
  consume([](Handling& handling) {
    write_effect(handling, "refused");
    handling.outbox().add({.type = "DocumentRejected", .aggregate = "doc-1"}).value();
    return business_error("no pages");
  });
  ASSERT_TRUE(notes_.wait(Kind::rejected));
  EXPECT_EQ(notes_.last_reason(Kind::rejected), "no pages");
  EXPECT_EQ(outcome(one), "rejected");
  EXPECT_EQ(row(one), "");
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(ask("SELECT count(*) FROM outbox_events"), "1");
}

TEST_F(ConsumerOutcome, one_failure_in_a_batch_fails_alone) {
  std::vector<Event> events;
  for (int i = 0; i < 20; ++i) events.push_back(event());
  publish(events);
  const std::string bad = events[7].id;
  consume([&](Handling& handling) -> Handled {
    write_effect(handling);
    if (handling.event().id == bad) throw 7;
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed, 19));
  ASSERT_TRUE(notes_.wait(Kind::failed, 1));
  EXPECT_EQ(effects(), "19");
  EXPECT_EQ(ask("SELECT count(DISTINCT event_id) FROM effects"), "19");
  EXPECT_EQ(row(events[7]), "RETRY 0");
}

TEST_F(ConsumerOutcome, whatever_a_handler_throws_is_a_failure_with_a_reason) {
  const std::map<std::string, std::function<void()>> throws{
      {"an exception", [] { throw std::runtime_error("no disk"); }},
      {"an exception without a text", [] { throw std::runtime_error(""); }},
      {"an exception with a text that is none", [] { throw std::runtime_error("\xff\x1b[2J"); }},
      {"an int", [] { throw 7; }},
      {"a text", [] { throw std::string("no disk"); }},
      {"a null pointer", [] { throw static_cast<const char*>(nullptr); }}};
  std::vector<Event> events{event("sound")};
  for (const auto& [what, throw_it] : throws) events.push_back(event(what));
  publish(events);
  auto with = options();
  with.max_retries = 0;
  with.breaker_after = 100;
  std::atomic<int> hooks{0};
  const auto act = [&](Handling& handling) {
    const auto found = throws.find(handling.event().aggregate);
    if (found != throws.end()) found->second();
  };
  with.on_give_up = [&](Handling& handling) {
    write_effect(handling, "given up");
    if (++hooks <= static_cast<int>(throws.size())) act(handling);
  };
  consume(with, [&](Handling& handling) {
    write_effect(handling);
    act(handling);
    return done();
  });
  const int all = static_cast<int>(throws.size());
  ASSERT_TRUE(notes_.wait(Kind::failed, all));
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events WHERE status = 'RETRY' AND last_error <> ''"),
            std::to_string(all));
  // Then the hooks throw the same, and succeed the next time.
  move_time(Millis{10'000});
  ASSERT_TRUE(notes_.wait(Kind::hook_failed, all));
  EXPECT_EQ(effects(), "1");
  move_time(Millis{300'000});
  ASSERT_TRUE(notes_.wait(Kind::dead, all));
  EXPECT_EQ(ask("SELECT count(*) FROM effects WHERE what = 'given up'"), std::to_string(all));
}

TEST_F(ConsumerOutcome, poison_is_dead_at_once_with_its_bytes_and_the_reason) {
  Message bad_id = message(event());
  bad_id.id = "17";
  Message no_id = message(event());
  no_id.id.clear();
  no_id.body = std::string("\xff{\x01", 3);
  const Event broken = event();
  Message no_json = message(broken);
  no_json.body = "{";
  Event big = event();
  Message too_large = message(big);
  too_large.body = '"' + std::string(kMaxEventPayload, 'x') + '"';
  auto with = options();
  std::atomic<int> hooks{0};
  with.on_give_up = [&](Handling&) { ++hooks; };
  publish(std::vector<Message>{no_id, no_json, too_large, bad_id, no_id});
  consume(with, [](Handling& handling) {
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::poison, 4));
  ASSERT_TRUE(notes_.wait(Kind::skipped, 1));
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events WHERE status = 'DEAD'"), "4");
  EXPECT_EQ(ask("SELECT count(*) FROM processed_events WHERE outcome = 'dead'"), "4");
  EXPECT_NE(ask("SELECT last_error FROM inbox_events WHERE message_id = '17'").find("UUID"),
            std::string::npos);
  EXPECT_EQ(ask("SELECT raw FROM inbox_events WHERE event_id = '" + broken.id + "'"), "{");
  EXPECT_EQ(ask("SELECT length(raw) FROM inbox_events WHERE message_id = ''"), "3");
  EXPECT_NE(ask("SELECT last_error FROM inbox_events WHERE message_id = ''").find("id"),
            std::string::npos);
  EXPECT_EQ(effects(), "0");
  EXPECT_EQ(hooks, 0);
}

TEST_F(ConsumerOutcome, deliveries_are_told_and_what_is_in_trouble_is_counted) {
  std::mutex mutex;
  std::vector<std::string> received;
  std::atomic<std::int64_t> dead{-1};
  ConsumerOptions watched = options();
  watched.on_note = [&](const ConsumerNote& note) {
    notes_.add(note);
    if (note.kind == Kind::counted) dead = note.counts.dead;
    if (note.kind != Kind::received) return;
    const std::lock_guard lock(mutex);
    received.push_back(note.event->id);
  };
  Message poison = message(event());
  poison.id.clear();
  const Event good = event();
  publish(std::vector<Message>{poison, message(good)});
  Consumer& first = consume(watched, [](Handling&) { return done(); });
  ASSERT_TRUE(notes_.wait(Kind::processed));
  ASSERT_TRUE(notes_.wait(Kind::poison));
  first.stop().value();
  EXPECT_EQ(received, std::vector<std::string>{good.id});
  consume(watched, [](Handling&) { return done(); });  // which begins with a count
  EXPECT_TRUE(poll_until([&] { return dead == 1; }));
}

TEST_F(ConsumerOutcome, an_unknown_version_is_a_dead_letter) {
  Event later = event();
  later.version = 3;
  publish({later});
  auto with = options();
  with.max_version = 2;
  consume(with, [](Handling&) { return done(); });
  ASSERT_TRUE(notes_.wait(Kind::poison));
  EXPECT_EQ(row(later), "DEAD 0");
}

TEST_F(ConsumerOutcome, a_handler_that_ends_its_transaction_has_failed) {
  const Event committed = event("commits");
  const Event rolled_back = event("rolls back");
  publish({committed, rolled_back, event("sound")});
  consume([&](Handling& handling) {
    write_effect(handling);
    const std::string aggregate = handling.event().aggregate;
    if (handling.attempt() == 1 && aggregate != "sound") {
      run(handling, aggregate == "commits" ? "COMMIT" : "ROLLBACK");
    }
    return done();
  });
  // What was committed with its id is a duplicate from then on.
  ASSERT_TRUE(notes_.wait(Kind::skipped));
  ASSERT_TRUE(notes_.wait(Kind::failed));
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(outcome(committed), "done");
  EXPECT_EQ(outcome(rolled_back), "retrying");
  EXPECT_NE(notes_.last_reason(Kind::failed).find("ended the transaction"), std::string::npos);
  move_time(Millis{1'000});
  ASSERT_TRUE(ask_until("SELECT count(*) FROM processed_events WHERE outcome = 'done'", "3"));
  EXPECT_EQ(effects(), "3");
}

// The session of such a handler looks like one whose first transaction has failed: nothing behind
// it in its batch may be taken for handled.
TEST_F(ConsumerOutcome, a_handler_that_commits_and_then_meets_a_conflict_has_failed_alone) {
  if (database_->postgres() == nullptr) GTEST_SKIP() << "SQLite has neither";
  const std::map<std::string, std::string> after{
      {"conflict", "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$"},
      {"deadlock", "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$"},
      {"error", "SELECT 1 / 0"},
      {"loss", "SELECT pg_terminate_backend(pg_backend_pid())"},
      {"overrun", "SELECT pg_sleep(60)"}};
  std::vector<Event> events;
  for (const auto& [name, sql] : after) {
    events.push_back(event("before"));
    events.push_back(event(name));
    events.push_back(event("behind"));
  }
  publish(events);
  auto with = options();
  with.handler_timeout = Millis{1'000};
  consume(with, [&](Handling& handling) {
    write_effect(handling);
    const auto found = after.find(handling.event().aggregate);
    if (found != after.end()) {
      run(handling, "COMMIT; BEGIN");
      run(handling, found->second.c_str());
    }
    return done();
  });
  // What was committed with its id is a duplicate from then on: those five, and what was first.
  const int committed = static_cast<int>(after.size()) + 1;
  ASSERT_TRUE(notes_.wait(Kind::processed, static_cast<int>(events.size()) - committed));
  ASSERT_TRUE(notes_.wait(Kind::skipped, committed));
  EXPECT_EQ(effects(), std::to_string(events.size()));
  EXPECT_EQ(ask("SELECT count(DISTINCT event_id) FROM effects"), std::to_string(events.size()));
}

TEST_F(ConsumerOutcome, a_handler_that_begins_its_own_transaction_has_failed_alone) {
  const Event committed = event("COMMIT; BEGIN");
  const Event rolled_back = event("ROLLBACK; BEGIN");
  publish({event("first"), committed, event("second"), rolled_back, event("third")});
  consume([&](Handling& handling) {
    write_effect(handling);
    const std::string aggregate = handling.event().aggregate;
    if (handling.attempt() == 1 && aggregate.ends_with("BEGIN")) {
      run(handling, aggregate.c_str());
    }
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::failed));
  EXPECT_EQ(outcome(rolled_back), "retrying");
  EXPECT_NE(notes_.last_reason(Kind::failed).find("ended the transaction"), std::string::npos);
  move_time(Millis{1'000});
  ASSERT_TRUE(ask_until("SELECT count(*) FROM processed_events WHERE outcome = 'done'", "5"));
  EXPECT_EQ(effects(), "5");
}

TEST_F(ConsumerOutcome, a_delivery_that_came_back_three_times_is_kept_before_it_is_handled) {
  const Event one = event();
  publish({one});
  {
    auto subscription =
        broker_->subscribe("q", {.prefetch = 1}, BootClock::now() + patience).value();
    for (int i = 0; i < 3; ++i) {
      const auto got = subscription->take(1, BootClock::now() + patience).value();
      ASSERT_EQ(got.size(), 1U);
      const Settlement back{got[0].tag, Settle::requeue};
      ASSERT_TRUE(subscription->settle({&back, 1}, BootClock::now() + patience));
    }
  }
  consume([](Handling& handling) {
    write_effect(handling);
    return handling.attempt() == 2 ? done() : failed("not counted");
  });
  ASSERT_TRUE(notes_.wait(Kind::kept));
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(outcome(one), "done");
}

TEST_F(ConsumerOutcome, what_the_broker_gave_up_on_is_tried_again_unless_it_is_known) {
  const Event one = event();
  const Event known = event();
  database_
      ->script(
          "INSERT INTO processed_events (consumer, event_id, outcome) VALUES ('validation', '" +
          known.id + "', 'done')")
      .value();
  broker_
      ->declare({.exchanges = {{"gone"}},
                 .queues = {{"q.dlq", false}},
                 .bindings = {{"gone", "#", "q.dlq", {}}}},
                BootClock::now() + patience)
      .value();
  auto first = message(one);
  auto second = message(known);
  first.exchange = second.exchange = "gone";
  publish(std::vector<Message>{first, second});
  consume([](Handling& handling) {
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(outcome(one), "done");
  ASSERT_TRUE(poll_until([&] {
    const auto queues =
        broker_->queues({.queues = {{"q.dlq", false}}}, BootClock::now() + patience);
    return queues && queues->front().ready == 0 && queues->front().unsettled == 0;
  }));
}

TEST_F(ConsumerOutcome, many_failures_open_the_breaker_and_use_no_retries) {
  std::vector<Event> events;
  for (int i = 0; i < 14; ++i) events.push_back(event());
  publish(events);
  std::atomic<bool> works{false};
  auto with = options();
  with.max_retries = 2;
  with.breaker_pause = Millis{1};
  consume(with, [&](Handling& handling) {
    if (!works) return failed("the scanner is away");
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::breaker_opened));
  // Far more probes than there are retries.
  const int before = notes_.count(Kind::failed);
  for (int i = 1; i <= 60; ++i) {
    move_time(Millis{10'000});
    ASSERT_TRUE(notes_.wait(Kind::failed, before + i));
  }
  EXPECT_EQ(notes_.count(Kind::dead), 0);
  works = true;
  ASSERT_TRUE(notes_.wait(Kind::breaker_closed));
  move_time(Millis{3'600'000});
  ASSERT_TRUE(notes_.wait(Kind::processed, 14));
  EXPECT_EQ(effects(), "14");
  EXPECT_EQ(notes_.count(Kind::dead), 0);
}

TEST_F(ConsumerOutcome, what_cannot_succeed_ends_as_dead_although_nothing_closes_the_breaker) {
  std::vector<Event> events;
  for (int i = 0; i < 12; ++i) events.push_back(event());
  publish(events);
  std::atomic<int> hooks{0};
  auto with = options();
  with.max_retries = 1;
  with.breaker_pause = Millis{1};
  with.breaker_patience = Millis{3'600'000};
  with.on_give_up = [&](Handling&) { ++hooks; };
  consume(with, [](Handling&) { return failed("no such page"); });
  ASSERT_TRUE(notes_.wait(Kind::breaker_opened));
  const int before = notes_.count(Kind::failed);
  for (int i = 1; i <= 30; ++i) {
    move_time(Millis{10'000});
    ASSERT_TRUE(notes_.wait(Kind::failed, before + i));
  }
  EXPECT_EQ(notes_.count(Kind::dead), 0);
  move_time(Millis{3'600'000});
  for (int dead = 1; dead <= 12; ++dead) {
    move_time(Millis{10'000});
    ASSERT_TRUE(notes_.wait(Kind::dead, dead)) << dead;
  }
  EXPECT_EQ(hooks, 12);
  EXPECT_EQ(notes_.count(Kind::breaker_closed), 0);
}

TEST_F(ConsumerOutcome, what_the_database_refuses_at_the_commit_is_a_failure_of_its_handler) {
  if (database_->postgres() == nullptr) GTEST_SKIP() << "foreign keys are off on SQLite";
  database_
      ->script(
          "CREATE TABLE parents (id text PRIMARY KEY); CREATE TABLE children (parent text"
          " REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
      .value();
  const Event orphan = event("orphan");
  publish({event("sound"), orphan, event("sound")});
  auto with = options();
  with.max_retries = 1;
  std::atomic<int> hooks{0};
  const auto adopt = [](const Handling& handling) {
    run(handling, "INSERT INTO children VALUES ('nobody')");
  };
  with.on_give_up = [&](Handling& handling) {
    if (++hooks == 1) adopt(handling);
  };
  consume(with, [&](Handling& handling) {
    write_effect(handling);
    if (handling.event().aggregate == "orphan") adopt(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed, 2));
  ASSERT_TRUE(notes_.wait(Kind::failed));
  EXPECT_NE(notes_.last_reason(Kind::failed).find("foreign key"), std::string::npos);
  move_time(Millis{10'000});
  ASSERT_TRUE(notes_.wait(Kind::hook_failed));
  move_time(Millis{300'000});
  ASSERT_TRUE(notes_.wait(Kind::dead));
  EXPECT_EQ(row(orphan), "DEAD 2");
  EXPECT_EQ(effects(), "2");
  EXPECT_EQ(notes_.count(Kind::paused), 0);
}

TEST_F(ConsumerOutcome, serializable_replicas_have_one_effect_of_each_event_and_do_not_pause) {
  if (database_->postgres() == nullptr) GTEST_SKIP() << "SQLite has one writer";
  const std::string name = ask("SELECT current_database()");
  database_->script("ALTER DATABASE " + name + " SET default_transaction_isolation = serializable")
      .value();
  std::vector<Event> events;
  for (int i = 0; i < 40; ++i) events.push_back(event(std::to_string(i)));
  for (int replica = 0; replica < 2; ++replica) {
    auto with = options();
    with.batch = 4;
    with.breaker_after = 0;
    with.retry_delays = {Millis{0}};
    consume(with, [](Handling& handling) {
      write_effect(handling);
      run(handling, "SELECT count(*) FROM effects");
      return handling.attempt() == 1 ? failed("the first time") : done();
    });
  }
  publish(events);
  ASSERT_TRUE(ask_until("SELECT count(*) FROM processed_events WHERE outcome = 'done'", "40"));
  EXPECT_EQ(effects(), "40");
  EXPECT_EQ(ask("SELECT count(DISTINCT event_id) FROM effects"), "40");
  EXPECT_EQ(notes_.count(Kind::paused), 0) << notes_.last_reason(Kind::paused);
}

TEST_F(ConsumerOutcome, a_handler_that_leaves_a_pipeline_open_has_failed_alone) {
  if (database_->postgres() == nullptr) GTEST_SKIP() << "SQLite has none";
  publish({event("sound"), event("pipeline"), event("sound")});
  consume([&](Handling& handling) {
    write_effect(handling);
    if (handling.event().aggregate == "pipeline" && handling.attempt() == 1) {
      PQenterPipelineMode(handling.postgres());
    }
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed, 2));
  ASSERT_TRUE(notes_.wait(Kind::failed));
  EXPECT_NE(notes_.last_reason(Kind::failed).find("pipeline"), std::string::npos);
  move_time(Millis{10'000});
  ASSERT_TRUE(notes_.wait(Kind::processed, 3));
  EXPECT_EQ(effects(), "3");
}

TEST_F(ConsumerOutcome, only_what_is_settled_for_good_leaves_the_ledger) {
  const auto add = [&](const std::string& outcome, const std::string& status) {
    const std::string id = make_event_id();
    database_
        ->script(
            "INSERT INTO processed_events (consumer, event_id, outcome)"
            " VALUES ('validation', '" +
            id + "', '" + outcome + "')")
        .value();
    if (status.empty()) return;
    database_
        ->script(
            "INSERT INTO inbox_events (consumer, queue, status, event_id, type,"
            " aggregate_type, aggregate_id, exchange, routing_key, payload, headers, version,"
            " message_id, content_type) VALUES ('validation', 'q', '" +
            status + "', '" + id + "', '', '', '', '', '', '', '{}', 1, '', '')")
        .value();
  };
  add("done", "");
  add("rejected", "");
  add("discarded", "DISCARDED");
  add("dead", "DEAD");
  add("retrying", "HELD");
  move_time(std::chrono::hours{14 * 24 + 1});
  consume([](Handling&) { return done(); });
  ASSERT_TRUE(ask_until("SELECT count(*) FROM processed_events", "2"));
  EXPECT_EQ(ask("SELECT count(*) FROM processed_events WHERE outcome IN ('dead', 'retrying')"),
            "2");
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events"), "2");
}

TEST_F(ConsumerOutcome, a_consumer_that_starts_after_the_events_misses_nothing) {
  auto with = options();
  with.queue = "late.q";
  with.exchange = "documents";
  with.bind = {"document.*"};
  // Declared when the services were deployed; then it was away.
  Consumer& early = consume(with, [](Handling&) { return done(); });
  ASSERT_TRUE(poll_until([&] {
    const auto queues = broker_->queues({.queues = {{"late.q"}}}, BootClock::now() + patience);
    return queues && queues->front().exists;
  }));
  early.stop().value();
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) events.push_back(event());
  publish(events);
  consume(with, [](Handling& handling) {
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(ask_until("SELECT count(*) FROM effects", "100"));
}

TEST_F(ConsumerOutcome, a_graceful_stop_finishes_what_is_in_hand) {
  std::promise<void> entered;
  std::promise<void> go_on;
  publish({event()});
  Consumer& consumer = consume([&](Handling& handling) {
    write_effect(handling);
    entered.set_value();
    go_on.get_future().wait();
    return done();
  });
  entered.get_future().wait();
  std::thread stopper([&] { consumer.stop().value(); });
  go_on.set_value();
  stopper.join();
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(ask("SELECT count(*) FROM processed_events"), "1");
}

TEST_F(ConsumerOutcome, several_consumers_of_one_name_handle_each_event_once) {
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) events.push_back(event());
  auto twice = events;
  twice.insert(twice.end(), events.begin(), events.end());
  for (int i = 0; i < 3; ++i) {
    consume([](Handling& handling) {
      write_effect(handling);
      return done();
    });
  }
  publish(twice);
  ASSERT_TRUE(notes_.wait(Kind::skipped, 300));
  ASSERT_TRUE(notes_.wait(Kind::processed, 300));
  EXPECT_EQ(effects(), "300");
  EXPECT_EQ(ask("SELECT count(DISTINCT event_id) FROM effects"), "300");
}

TEST_F(ConsumerOutcome, wrong_options_and_missing_tables_are_errors) {
  const auto refused = [&](ConsumerOptions with, const std::string& part) {
    Consumer consumer(broker_, service_->url(), std::move(with), [](Handling&) { return done(); });
    const auto ran = consumer.run({});
    ASSERT_FALSE(ran) << part;
    EXPECT_NE(ran.error().message.find(part), std::string::npos) << ran.error().message;
  };
  auto with = options();
  with.name = "a\nb";
  refused(with, "name");
  with = options();
  with.bind = {"#"};
  refused(with, "exchange");
  with = options();
  with.batch = 0;
  refused(with, "batch");
  database_->script("UPDATE inbox_version SET version = 99").value();
  refused(options(), "newer Baton");
  database_->script("DROP TABLE inbox_version").value();
  refused(options(), "baton inbox install");
}

TEST_F(ConsumerOutcome, an_outage_of_the_database_leaves_no_dead_letters) {
  if (!service_->can_go_away()) GTEST_SKIP() << "an SQLite file does not go away";
  std::vector<Event> events;
  for (int i = 0; i < 20; ++i) events.push_back(event());
  auto with = options();
  with.retry_delays = {Millis{0}};
  with.max_retries = 1;
  std::atomic<int> calls{0};
  consume(with, [&](Handling& handling) {
    // The server goes while the handler is at work.
    if (++calls == 1) service_->take_away();
    write_effect(handling);
    return done();
  });
  publish(events);
  ASSERT_TRUE(notes_.wait(Kind::paused));
  service_->bring_back();
  ASSERT_TRUE(notes_.wait(Kind::resumed));
  ASSERT_TRUE(notes_.wait(Kind::processed, 20));
  database_ = sql::Connection::open(service_->url()).value();
  EXPECT_EQ(effects(), "20");
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events"), "0");
  EXPECT_EQ(notes_.count(Kind::failed) + notes_.count(Kind::dead), 0);
}

TEST_F(ConsumerOutcome, a_handler_that_loses_its_session_again_and_again_has_failed_alone) {
  if (!service_->can_go_away()) GTEST_SKIP() << "SQLite has no sessions";
  const Event killer = event("killer");
  publish({event("first"), killer, event("second"), event("third")});
  auto with = options();
  with.max_retries = 1;
  with.retry_delays = {Millis{0}};
  std::atomic<int> kills{0};
  consume(with, [&](Handling& handling) {
    write_effect(handling);
    if (handling.event().aggregate == "killer") {
      ++kills;
      run(handling, "SELECT pg_terminate_backend(pg_backend_pid())");
    }
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed, 3));
  ASSERT_TRUE(notes_.wait(Kind::dead));
  EXPECT_EQ(effects(), "3");
  EXPECT_EQ(row(killer), "DEAD 1");
  const std::string why = ask("SELECT last_error FROM inbox_events");
  EXPECT_NE(why.find("the connection to the database is lost"), std::string::npos) << why;
  EXPECT_NE(why.find("terminating connection"), std::string::npos) << why;
  EXPECT_NE(notes_.last_reason(Kind::paused).find("is lost"), std::string::npos);
  // Three times at each of two attempts, and three times in its batch if it had one.
  EXPECT_TRUE(kills == 6 || kills == 9) << kills;
}

TEST(SessionFailures, what_the_server_may_have_done_by_itself_counts_for_less) {
  inbox::SessionFailures at_once(5);
  EXPECT_FALSE(at_once.failed_again(5));
  EXPECT_FALSE(at_once.failed_again(5));
  EXPECT_TRUE(at_once.failed_again(5));
  inbox::SessionFailures after_outages(5);
  for (int refusals = 6; refusals < 14; ++refusals) {
    EXPECT_FALSE(after_outages.failed_again(refusals));
  }
  EXPECT_TRUE(after_outages.failed_again(14));
}

TEST_F(ConsumerOutcome, a_hook_that_loses_its_session_again_and_again_has_failed) {
  if (!service_->can_go_away()) GTEST_SKIP() << "SQLite has no sessions";
  publish({event("given up")});
  auto with = options();
  with.max_retries = 0;
  with.retry_delays = {Millis{0}};
  std::atomic<int> hooks{0};
  with.on_give_up = [&](Handling& handling) {
    if (++hooks <= 3) run(handling, "SELECT pg_terminate_backend(pg_backend_pid())");
  };
  consume(with, [&](Handling& handling) {
    if (handling.event().aggregate == "given up") return failed("no disk");
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::hook_failed));
  EXPECT_NE(notes_.last_reason(Kind::hook_failed).find("is lost"), std::string::npos);
  publish({event("behind")});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  move_time(Millis{300'000});
  ASSERT_TRUE(notes_.wait(Kind::dead));
  EXPECT_EQ(effects(), "1");
}

// What the consumer itself writes behind a handler fails then, each time again.
TEST_F(ConsumerOutcome, a_handler_that_leaves_other_settings_behind_has_failed_alone) {
  if (!service_->can_go_away()) GTEST_SKIP() << "SQLite has no settings of a transaction";
  const std::string role = "nobody_" + ask("SELECT current_database()");
  database_->script("CREATE ROLE " + role + "; GRANT " + role + " TO CURRENT_USER").value();
  const std::map<std::string, std::string> changes{
      {"path", "SET LOCAL search_path = pg_catalog"},
      {"role", "SET LOCAL ROLE " + role},
      {"read only", "SET LOCAL transaction_read_only = on"}};
  std::vector<Event> events{event("sound")};
  for (const auto& [name, sql] : changes) {
    events.push_back(event("refused, " + name));
    events.push_back(event("retried, " + name));
    events.push_back(event("sound"));
  }
  publish(events);
  auto with = options();
  with.max_retries = 1;
  with.retry_delays = {Millis{0}};
  with.breaker_after = 0;
  consume(with, [&](Handling& handling) {
    write_effect(handling);
    const std::string& aggregate = handling.event().aggregate;
    if (aggregate == "sound") return done();
    const bool refuses = aggregate.starts_with("refused");
    if (!refuses && handling.attempt() == 1) return failed("the first time");
    run(handling, changes.at(aggregate.substr(aggregate.find(", ") + 2)).c_str());
    return refuses ? business_error("no pages") : done();
  });
  const int sound = static_cast<int>(changes.size()) + 1;
  const int others = 2 * static_cast<int>(changes.size());
  EXPECT_TRUE(notes_.wait(Kind::processed, sound));
  EXPECT_TRUE(notes_.wait(Kind::dead, others));
  EXPECT_EQ(effects(), std::to_string(sound));
  EXPECT_EQ(ask("SELECT count(*) FROM inbox_events WHERE status = 'DEAD'"
                " AND last_error LIKE '%SET LOCAL ROLE NONE%'"),
            std::to_string(others))
      << ask("SELECT string_agg(aggregate_id || ': ' || last_error, chr(10)) FROM inbox_events");
  for (auto& consumer : consumers_) consumer->stop().value();
  database_->script("DROP ROLE " + role).value();
}

TEST_F(ConsumerOutcome, a_handler_that_overruns_loses_its_connection_and_has_failed) {
  if (!service_->can_go_away()) GTEST_SKIP() << "on SQLite the process ends";
  auto with = options();
  with.handler_timeout = Millis{200};
  const Event slow = event();
  publish({event(), slow, event()});
  consume(with, [&](Handling& handling) {
    write_effect(handling);
    if (handling.event().id == slow.id && handling.attempt() == 1) {
      run(handling, "SELECT pg_sleep(60)");
    }
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed, 2));
  ASSERT_TRUE(notes_.wait(Kind::failed));
  EXPECT_NE(notes_.last_reason(Kind::failed).find("200 ms"), std::string::npos);
  move_time(Millis{1'000});
  ASSERT_TRUE(notes_.wait(Kind::processed, 3));
  EXPECT_EQ(effects(), "3");
}

TEST_F(ConsumerOutcome, a_handler_that_never_returns_is_left_alone) {
  if (!service_->can_go_away()) GTEST_SKIP() << "on SQLite the process ends";
  // It outlives the consumer, so what it waits for belongs to it.
  const auto release = std::make_shared<std::promise<void>>();
  const auto released = std::make_shared<std::shared_future<void>>(release->get_future().share());
  auto with = options();
  with.handler_timeout = Millis{100};
  publish({event()});
  consume(with, [released](Handling& handling) {
    if (handling.attempt() == 1) released->wait();
    write_effect(handling);
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::failed));
  move_time(Millis{1'000});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(effects(), "1");
  release->set_value();
}

TEST_F(ConsumerOutcome, a_deadlock_is_repeated_and_uses_no_retry) {
  if (!service_->can_go_away()) GTEST_SKIP() << "SQLite has one writer";
  publish({event()});
  std::atomic<int> calls{0};
  consume([&](Handling& handling) {
    write_effect(handling);
    if (++calls < 3) {
      run(handling, "DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$");
    }
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(effects(), "1");
  EXPECT_EQ(notes_.count(Kind::failed), 0);
}

TEST_F(ConsumerOutcome, a_handler_that_ignores_a_failed_statement_has_failed) {
  if (!service_->can_go_away()) GTEST_SKIP() << "SQLite goes on after a failed statement";
  const Event one = event();
  publish({one});
  consume([&](Handling& handling) {
    write_effect(handling);
    if (handling.attempt() == 1) run(handling, "SELECT 1 / 0");
    return done();
  });
  ASSERT_TRUE(notes_.wait(Kind::failed));
  EXPECT_EQ(row(one), "RETRY 0");
  EXPECT_NE(notes_.last_reason(Kind::failed).find("division by zero"), std::string::npos);
}

}  // namespace
}  // namespace baton::test
