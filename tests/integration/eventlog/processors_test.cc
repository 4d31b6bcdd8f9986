// Views and publishers: progress with effect, failures, what operators do, rebuilds, crashes.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include <libpq-fe.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baton/locks.h"
#include "baton/postgres_advisory_store.h"
#include "baton/processors.h"
#include "baton/store_admin.h"
#include "integration/eventlog/log_database.h"
#include "support/wait.h"

namespace baton::test {
namespace {

// Adds up the payloads, which are numbers, by stream, and counts the events.
Result<void> add_up(EventBatch& batch) {
  const std::string table = batch.table("totals");
  for (const LoggedEvent& logged : batch.events()) {
    const std::string sql = "INSERT INTO " + table + " AS t (stream, total, events) VALUES ('" +
                            logged.event.aggregate + "', " + logged.event.payload +
                            ", 1) ON CONFLICT (stream) DO UPDATE SET total = t.total +"
                            " excluded.total, events = t.events + 1";
    if (batch.postgres() != nullptr) {
      const std::unique_ptr<PGresult, decltype(&PQclear)> done(
          PQexec(batch.postgres(), sql.c_str()), &PQclear);
      if (PQresultStatus(done.get()) != PGRES_COMMAND_OK) {
        return Error{.code = Code::bad_request, .message = PQerrorMessage(batch.postgres())};
      }
    } else if (sqlite3_exec(batch.sqlite(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      return Error{.code = Code::bad_request, .message = sqlite3_errmsg(batch.sqlite())};
    }
  }
  return {};
}

ProcessorsOptions quick() {
  return {.batch = 4, .poll_interval = Millis(5), .max_attempts = 3, .first_delay = Millis(5)};
}

// The processors of one replica, on a thread, until the end of the scope.
class Running {
 public:
  explicit Running(Processors& processors)
      : processors_(processors), thread_([this] { ended_ = processors_.run(); }) {}
  ~Running() {
    processors_.stop();
    thread_.join();
    EXPECT_TRUE(ended_) << ended_.error().message;
  }

 private:
  Processors& processors_;
  Result<void> ended_;
  std::thread thread_;
};

class ProcessorsTest : public ::testing::TestWithParam<DatabaseKind> {
 protected:
  ProcessorsTest() {
    connection_
        ->script(
            "CREATE TABLE totals (stream varchar(99) PRIMARY KEY, total bigint NOT"
            " NULL, events bigint NOT NULL); CREATE INDEX totals_by_total ON totals"
            " (total)")
        .value();
  }

  ProcessorState state(const std::string& name) { return admin_->list(name).value().front(); }

  void fill(int count) {
    for (int i = 0; i < count; ++i) {
      append_one(*connection_, "s" + std::to_string(i % 3), std::to_string(i));
    }
  }

  std::string view() {
    std::string text;
    const auto rows =
        connection_->query("SELECT stream, total, events FROM totals ORDER BY stream").value();
    for (const auto& row : rows) {
      text += row.text(0) + "=" + row.text(1) + "/" + row.text(2) + " ";
    }
    return text;
  }

  // The same from the log itself.
  std::string truth() {
    std::string text;
    const auto rows = connection_
                          ->query(
                              "SELECT stream, sum(CAST(payload AS bigint)), count(*) FROM"
                              " event_log GROUP BY stream ORDER BY stream")
                          .value();
    for (const auto& row : rows) {
      text += row.text(0) + "=" + row.text(1) + "/" + row.text(2) + " ";
    }
    return text;
  }

  bool is_done(const std::string& name) {
    const auto all = admin_->list();
    if (!all) return false;
    for (const auto& one : *all) {
      if (one.name == name) return one.lag == 0 && one.rebuild_status.empty();
    }
    return false;
  }

  LogDatabase database_{GetParam()};
  std::unique_ptr<sql::Connection> connection_ = database_.connect();
  std::unique_ptr<ProcessorAdmin> admin_ = ProcessorAdmin::open(database_.url()).value();
  LockClient locks_ = open("memory:").value();
};

TEST_P(ProcessorsTest, a_view_follows_the_log_in_every_form_of_ownership) {
  for (const auto ownership : {ProcessorOwnership::elected, ProcessorOwnership::partitioned}) {
    ProcessorsOptions options = quick();
    options.ownership = ownership;
    options.partitions = 2;
    Processors processors(locks_, database_.url(), "shop", options);
    ASSERT_TRUE(processors.add_view("totals_view", {"totals"}, add_up));
    const Running running(processors);
    fill(10);
    ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
    EXPECT_EQ(view(), truth());
    EXPECT_EQ(state("totals_view").owner, locks_.owner());
    EXPECT_GT(state("totals_view").owner_token, 0U);
  }
}

TEST_P(ProcessorsTest, a_handler_that_ends_its_transaction_has_failed) {
  fill(3);
  for (const char* const end : {"COMMIT", "ROLLBACK", "ROLLBACK; BEGIN"}) {
    Processors processors(locks_, database_.url(), "shop", quick());
    const std::string name = "ends_" + std::to_string(std::strlen(end));
    ASSERT_TRUE(processors.add_view(name, {}, [&](EventBatch& batch) -> Result<void> {
      if (batch.postgres() != nullptr) {
        PQclear(PQexec(batch.postgres(), end));
      } else {
        sqlite3_exec(batch.sqlite(), end, nullptr, nullptr, nullptr);
      }
      return {};
    }));
    const Running running(processors);
    ASSERT_TRUE(poll_until([&] {
      const auto all = admin_->list(name);
      return all && all->front().status == "PAUSED";
    })) << end;
    EXPECT_EQ(state(name).position, 0) << end;
    EXPECT_NE(state(name).last_error.find("ended by a statement"), std::string::npos);
  }
}

TEST_P(ProcessorsTest, a_failing_event_pauses_its_processor_alone_and_is_named) {
  fill(6);
  std::atomic<bool> fails{true};
  std::atomic<int> paused{0};
  ProcessorsOptions options = quick();
  options.on_paused = [&](const std::string& name, const Error&) {
    if (name == "fragile") ++paused;
  };
  Processors processors(locks_, database_.url(), "shop", options);
  ASSERT_TRUE(processors.add_view("totals_view", {"totals"}, add_up));
  ASSERT_TRUE(processors.add_view("fragile", {}, [&](EventBatch& batch) -> Result<void> {
    for (const auto& logged : batch.events()) {
      if (fails && logged.event.payload == "4") throw std::runtime_error("no fours");
    }
    return {};
  }));
  const Running running(processors);
  ASSERT_TRUE(poll_until([&] { return paused == 1; }));
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
  const auto bad = state("fragile");
  EXPECT_EQ(bad.status, "PAUSED");
  EXPECT_EQ(bad.attempts, 3);
  EXPECT_EQ(bad.error_position, bad.position + 1);
  EXPECT_EQ(bad.lag, 2);  // all before it have been handled
  EXPECT_NE(bad.last_error.find("Added "), std::string::npos) << bad.last_error;
  EXPECT_NE(bad.last_error.find("no fours"), std::string::npos) << bad.last_error;

  fails = false;
  ASSERT_TRUE(admin_->resume("fragile"));
  ASSERT_TRUE(poll_until([&] { return is_done("fragile"); }));
  EXPECT_EQ(state("fragile").last_error, "");
}

TEST_P(ProcessorsTest, a_conflict_that_never_ends_pauses_the_processor_as_a_failure_does) {
  if (connection_->postgres() == nullptr) GTEST_SKIP() << "SQLite has one writer";
  connection_
      ->script(
          "CREATE TABLE contested (id bigint);"
          "CREATE FUNCTION contest() RETURNS trigger LANGUAGE plpgsql AS"
          " $$ BEGIN RAISE EXCEPTION 'contested' USING ERRCODE = '40001'; END $$;"
          "CREATE CONSTRAINT TRIGGER contest AFTER INSERT ON contested"
          " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION contest()")
      .value();
  fill(1);
  std::atomic<int> calls{0};
  std::atomic<bool> paused{false};
  ProcessorsOptions options = quick();
  options.on_paused = [&](const std::string&, const Error&) { paused = true; };
  Processors processors(locks_, database_.url(), "shop", options);
  ASSERT_TRUE(processors.add_view("contested_view", {}, [&](EventBatch& batch) -> Result<void> {
    ++calls;
    PQclear(PQexec(batch.postgres(), "INSERT INTO contested VALUES (1)"));
    return {};
  }));
  const Running running(processors);
  ASSERT_TRUE(poll_until([&] { return paused.load(); })) << calls;
  EXPECT_EQ(calls, 3 * 21);
}

TEST_P(ProcessorsTest, operators_pause_resume_and_reset) {
  Processors processors(locks_, database_.url(), "shop", quick());
  ASSERT_TRUE(processors.add_view("totals_view", {"totals"}, add_up));
  const Running running(processors);
  fill(5);
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
  ASSERT_TRUE(admin_->pause("totals_view"));
  const std::string before = view();
  fill(3);
  EXPECT_EQ(state("totals_view").lag, 3);
  EXPECT_EQ(view(), before);
  ASSERT_TRUE(admin_->reset("totals_view"));
  EXPECT_EQ(view(), "");
  EXPECT_EQ(state("totals_view").lag, 8);
  ASSERT_TRUE(admin_->resume("totals_view"));
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
  EXPECT_EQ(view(), truth());
  for (const auto& refused : {admin_->pause("nobody"), admin_->rebuild("nobody")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::bad_request);
  }
}

TEST_P(ProcessorsTest, a_rebuild_gives_the_same_view_and_publishes_nothing) {
  const auto add_and_tell = [](EventBatch& batch) -> Result<void> {
    if (auto done = add_up(batch); !done) return done;
    return batch.publish(Outbox({.exchange = "shop"}),
                         {.type = "TotalsChanged", .aggregate = "totals"});
  };
  Processors processors(locks_, database_.url(), "shop", quick());
  ASSERT_TRUE(processors.add_view("totals_view", {"totals"}, add_and_tell));
  ASSERT_TRUE(
      processors.add_publisher("orders", "mail", [](EventBatch&) { return Result<void>(); }));
  const Running running(processors);
  fill(9);
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view") && is_done("orders.mail"); }));
  const auto told = [&] {
    return connection_->query("SELECT count(*) FROM outbox_events").value().front().integer(0);
  };
  const auto before = told();
  EXPECT_GT(before, 0);
  // What is wrong with the old view is gone with it.
  connection_->query("UPDATE totals SET total = -1").value();
  ASSERT_TRUE(admin_->rebuild("totals_view"));
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
  EXPECT_EQ(view(), truth());
  EXPECT_EQ(told(), before);
  // It goes on from there, and can be built again.
  fill(4);
  ASSERT_TRUE(admin_->rebuild("totals_view"));
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
  EXPECT_EQ(view(), truth());
  const auto refused = admin_->rebuild("orders.mail");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_request);
}

TEST_P(ProcessorsTest, a_rebuild_that_fails_leaves_the_view_as_it_is) {
  std::atomic<bool> fails{true};
  Processors processors(locks_, database_.url(), "shop", quick());
  ASSERT_TRUE(processors.add_view("totals_view", {"totals"}, [&](EventBatch& batch) {
    if (batch.rebuilding() && fails) return Result<void>(Error{.message = "cannot be built"});
    return add_up(batch);
  }));
  const Running running(processors);
  fill(5);
  ASSERT_TRUE(poll_until([&] { return is_done("totals_view"); }));
  ASSERT_TRUE(admin_->rebuild("totals_view"));
  ASSERT_TRUE(poll_until([&] { return state("totals_view").rebuild_status == "FAILED"; }));
  EXPECT_NE(state("totals_view").rebuild_error.find("cannot be built"), std::string::npos);
  EXPECT_EQ(view(), truth());
  fill(2);
  ASSERT_TRUE(poll_until([&] { return state("totals_view").lag == 0; }));
  EXPECT_EQ(view(), truth());
}

TEST_P(ProcessorsTest, two_readers_see_one_order_while_writers_race) {
  std::mutex mutex;
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
  const auto note = [&mutex](std::vector<std::int64_t>& seen) {
    return [&mutex, &seen](EventBatch& batch) {
      const std::scoped_lock lock(mutex);
      for (const auto& logged : batch.events()) seen.push_back(logged.position);
      return Result<void>();
    };
  };
  Processors processors(locks_, database_.url(), "shop", quick());
  ASSERT_TRUE(processors.add_publisher("all", "first", note(first)));
  ASSERT_TRUE(processors.add_publisher("all", "second", note(second)));
  {
    const Running running(processors);
    std::vector<std::thread> writers;
    for (int w = 0; w < 3; ++w) {
      writers.emplace_back([&, w] {
        auto connection = database_.connect();
        for (int i = 0; i < 20; ++i) append_one(*connection, "w" + std::to_string(w));
      });
    }
    for (auto& writer : writers) writer.join();
    ASSERT_TRUE(poll_until([&] { return is_done("all.first") && is_done("all.second"); }));
  }
  std::vector<std::int64_t> all;
  const auto rows = connection_->query("SELECT position FROM event_log ORDER BY position").value();
  for (const auto& row : rows) {
    all.push_back(row.integer(0));
  }
  EXPECT_EQ(all.size(), 60U);
  EXPECT_EQ(first, all);
  EXPECT_EQ(second, all);
}

// Kills the process in the handler of its second batch: before it writes, after, or at the begin of
// the third, when the second is committed.
TEST_P(ProcessorsTest, view_and_progress_agree_wherever_the_process_dies) {
  fill(12);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(admin_->list());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int batches = 0;
      Processors processors(open("memory:").value(), database_.url(), "shop",
                            {.batch = 3, .poll_interval = Millis(5)});
      (void)processors.add_view("totals_view", {"totals"}, [&](EventBatch& batch) {
        ++batches;
        if ((step == 0 && batches == 2) || batches == 3) raise(SIGKILL);
        auto done = add_up(batch);
        if (step == 1 && batches == 2) raise(SIGKILL);
        return done;
      });
      (void)processors.run();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const auto events = connection_->query("SELECT coalesce(sum(events), 0) FROM totals");
    EXPECT_EQ(events.value().front().integer(0), 12 - state("totals_view").lag) << step;
    ASSERT_TRUE(admin_->reset("totals_view"));
  }
}

// The key of the views in programs that take it with pg_try_advisory_lock.
TEST(ProcessorsOnANumericKey, share_one_lock_with_programs_that_do_not_know_baton) {
  const LogDatabase log(DatabaseKind::postgres);
  const std::string store =
      "postgres-advisory" + log.url().substr(log.url().find(':')) + "?key=4856221667890123457";
  const Deadline soon = BootClock::now() + patience;
  open_postgres_advisory_admin(store, soon).value()->migrate(soon).value();
  const auto connection = log.connect();
  append_one(*connection, "s");
  Session other(log.url());
  ASSERT_EQ(other.sql("SELECT pg_try_advisory_lock(4856221667890123457)"), "t");

  const LockClient locks = open(store).value();
  std::atomic<bool> alone{false};
  std::atomic<int> handled{0};
  std::atomic<int> too_early{0};
  Processors processors(locks, log.url(), "views", quick());
  processors
      .add_view("any_view", {},
                [&](EventBatch& batch) -> Result<void> {
                  if (!alone) ++too_early;
                  handled += static_cast<int>(batch.events().size());
                  return {};
                })
      .value();
  const Running running(processors);
  // It stands in the queue behind the program.
  ASSERT_TRUE(poll_until([&] {
    return other.sql(
               "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
               " AND database = (SELECT oid FROM pg_database"
               "                 WHERE datname = current_database())") == "1";
  }));
  EXPECT_EQ(handled, 0);
  alone = true;
  ASSERT_EQ(other.sql("SELECT pg_advisory_unlock(4856221667890123457)"), "t");
  EXPECT_TRUE(poll_until([&] { return handled == 1; }));
  EXPECT_EQ(too_early, 0);
  EXPECT_EQ(other.sql("SELECT pg_try_advisory_lock(4856221667890123457)"), "f");
  const auto admin = ProcessorAdmin::open(log.url()).value();
  EXPECT_GT(admin->list("any_view").value().front().owner_token, 0U);
}

INSTANTIATE_TEST_SUITE_P(On, ProcessorsTest,
                         ::testing::Values(DatabaseKind::postgres, DatabaseKind::sqlite),
                         [](const auto& of) {
                           return of.param == DatabaseKind::postgres ? "postgres" : "sqlite";
                         });

}  // namespace
}  // namespace baton::test
