// baton processor: what an operator types, and reads, beside processors that run.

#include <atomic>
#include <fstream>
#include <thread>

#include <sqlite3.h>

#include "baton/event_log.h"
#include "baton/locks.h"
#include "baton/processors.h"
#include "integration/cli/cli_support.h"
#include "sql/connection.h"
#include "sql/transaction.h"

namespace baton::test {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CliProcessor : public CliTest {
 protected:
  CliProcessor() { std::ofstream(dir_ / "shop.db").flush(); }
  ~CliProcessor() override {
    held_ = false;
    end();
  }

  std::string database() const { return "sqlite:" + (dir_ / "shop.db").string(); }

  Words on(Words words) const {
    words.insert(words.begin(), "processor");
    words.insert(words.end(), {"--database", database()});
    return words;
  }
  Finished processor(Words words) const { return baton(on(std::move(words))); }

  // A log of some events, and a view that counts them. It fails at the fourth while `fails_`, and
  // waits in a rebuild while `held_`.
  void run_a_view() {
    ASSERT_EQ(processor({"install"}).status.code, 0);
    const auto connection = sql::Connection::open(database()).value();
    connection->script("CREATE TABLE counts (position INTEGER)").value();
    const EventLog log;
    for (int i = 0; i < 6; ++i) {
      connection
          ->transaction([&](sql::Transaction&) -> Result<void> {
            const std::vector<Event> events{{.type = "Added", .payload = std::to_string(i)}};
            auto done = log.append(connection->sqlite(), "s", events);
            if (!done) return done.error();
            return {};
          })
          .value();
    }
    start_view();
  }

  void start_view() {
    processors_ = std::make_unique<Processors>(
        locks_, database(), "shop",
        ProcessorsOptions{
            .batch = 2, .poll_interval = Millis(5), .max_attempts = 2, .first_delay = Millis(5)});
    processors_
        ->add_view("counts_view", {"counts"}, [this](EventBatch& batch) { return count(batch); })
        .value();
    thread_ = std::thread([this] { (void)processors_->run(); });
  }

  void end() {
    if (processors_) processors_->stop();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> count(EventBatch& batch) {
    while (batch.rebuilding() && held_) std::this_thread::sleep_for(Millis(1));
    for (const auto& logged : batch.events()) {
      if (fails_ && logged.event.payload == "3") {
        return Error{.code = Code::bad_request, .message = "no\x1b[31m threes"};
      }
      const std::string sql = "INSERT INTO " + batch.table("counts") + " VALUES (" +
                              std::to_string(logged.position) + ")";
      sqlite3_exec(batch.sqlite(), sql.c_str(), nullptr, nullptr, nullptr);
    }
    return {};
  }

  [[nodiscard]] bool shows(const std::string& part) const {
    return poll_until([&] { return has(processor({"show", "counts_view", "--json"}).out, part); });
  }
  [[nodiscard]] std::string rows() const {
    return sql::Connection::open(database())
        .value()
        ->query("SELECT count(*) FROM counts")
        .value()
        .front()
        .text(0);
  }

  LockClient locks_ = open("memory:", {.owner = "web-1"}).value();
  std::atomic<bool> fails_{false};
  std::atomic<bool> held_{false};
  std::unique_ptr<Processors> processors_;
  std::thread thread_;
};

TEST_F(CliProcessor, a_database_without_an_event_log_is_told_how_to_get_one) {
  const auto told = processor({"list"});
  EXPECT_EQ(told.status.code, 1) << told.err;
  EXPECT_TRUE(has(told.err, "baton processor install")) << told.err;
  EXPECT_EQ(processor({"install"}).status.code, 0);
  EXPECT_EQ(processor({"install"}).out, "the event log is in " + database() + "\n");
  EXPECT_EQ(processor({"list"}).out, "no processor has run on this event log\n");
  refuses(on({"show", "nobody"}), 2, "bad_request", "there is no processor nobody");
  refuses({"processor", "list", "--database", "mysql://u:secret@h"}, 2, "bad_url", "postgres://");
  refuses({"processor", "list"}, 2, "usage", "--database");
}

TEST_F(CliProcessor, what_runs_is_listed_with_position_lag_owner_and_token) {
  run_a_view();
  ASSERT_TRUE(shows(R"("position":6,"head":6,"lag":0)"));
  const auto list = processor({"list"}).out;
  EXPECT_TRUE(has(list, "counts_view")) << list;
  EXPECT_TRUE(has(list, "web-1")) << list;
  const auto shown = processor({"show", "counts_view"}).out;
  EXPECT_TRUE(has(shown, "6 of 6")) << shown;
  EXPECT_TRUE(has(shown, "0 events")) << shown;
  const auto json = processor({"show", "counts_view", "--json"}).out;
  EXPECT_TRUE(has(json, R"("owner":"web-1","owner_token":1)")) << json;
  EXPECT_TRUE(has(json, R"("tables":["counts"])")) << json;
}

TEST_F(CliProcessor, an_event_that_fails_is_named_and_tried_again_after_a_resume) {
  fails_ = true;
  run_a_view();
  ASSERT_TRUE(shows(R"("status":"PAUSED")"));
  const auto shown = processor({"show", "counts_view"}).out;
  EXPECT_TRUE(has(shown, "PAUSED")) << shown;
  EXPECT_TRUE(has(shown, "at position 4: no\\u001b[31m threes") || has(shown, "\\x1b[31m threes"))
      << shown;
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  fails_ = false;
  EXPECT_EQ(processor({"resume", "counts_view"}).out, "counts_view is running\n");
  EXPECT_TRUE(shows(R"("position":6)"));
  EXPECT_EQ(processor({"pause", "counts_view"}).out, "counts_view is paused\n");
  EXPECT_TRUE(shows(R"("status":"PAUSED")"));
}

TEST_F(CliProcessor, a_reset_says_what_it_would_do_and_needs_a_yes) {
  run_a_view();
  ASSERT_TRUE(shows(R"("position":6)"));
  end();
  refuses(on({"reset", "counts_view"}), 2, "bad_request",
          "counts_view would empty counts and handle all events again: add --yes to do it");
  EXPECT_EQ(rows(), "6");
  const auto done = processor({"reset", "counts_view", "--yes"});
  EXPECT_EQ(done.out, "counts_view begins with the first event\n") << done.err;
  EXPECT_EQ(rows(), "0");
  EXPECT_TRUE(shows(R"("position":0)"));
}

TEST_F(CliProcessor, a_rebuild_shows_its_progress_and_ends_when_the_tables_are_exchanged) {
  run_a_view();
  ASSERT_TRUE(shows(R"("position":6)"));
  held_ = true;
  auto rebuild = start(on({"rebuild", "counts_view"}));
  ASSERT_TRUE(rebuild->wait_for_err("rebuilding counts_view: 0%, position 0 of 6\n"))
      << rebuild->err();
  ASSERT_TRUE(shows(R"("rebuild_status":"RUNNING")"));
  EXPECT_FALSE(rebuild->wait(std::chrono::seconds(1))) << "it has not waited";
  held_ = false;
  ends(*rebuild, 0);
  EXPECT_EQ(rebuild->out(), "counts_view is rebuilt\n");
  EXPECT_EQ(rows(), "6");
}

TEST_F(CliProcessor, a_terminal_has_a_bar_that_replaces_itself) {
  run_a_view();
  ASSERT_TRUE(shows(R"("position":6)"));
  held_ = true;
  auto made = options(on({"rebuild", "counts_view"}));
  std::string line;
  for (const auto& word : made.argv) line += "'" + word + "' ";
  made.argv = {"script", "-qec", line, "/dev/null"};
  made.env["TERM"] = "xterm";
  Process rebuild(made);
  ASSERT_TRUE(rebuild.wait_for_out("\r\x1b[Krebuilding counts_view [          ")) << rebuild.out();
  held_ = false;
  ends(rebuild, 0);
  EXPECT_TRUE(has(rebuild.out(), "counts_view is rebuilt")) << rebuild.out();
}

TEST_F(CliProcessor, a_rebuild_that_fails_says_why_and_leaves_the_tables) {
  run_a_view();
  ASSERT_TRUE(shows(R"("position":6)"));
  fails_ = true;
  const auto rebuild = processor({"rebuild", "counts_view"});
  EXPECT_EQ(rebuild.status.code, 1);
  EXPECT_TRUE(has(rebuild.err, "at position 4")) << rebuild.err;
  EXPECT_TRUE(has(rebuild.err, "its tables are as before")) << rebuild.err;
  EXPECT_EQ(rows(), "6");
}

TEST_F(CliProcessor, a_rebuild_waits_for_somebody_who_runs_it) {
  run_a_view();
  ASSERT_TRUE(shows(R"("position":6)"));
  end();
  const auto connection = sql::Connection::open(database()).value();
  connection->script("UPDATE event_processor SET alive_at = alive_at - 60000").value();
  EXPECT_EQ(processor({"rebuild", "counts_view", "--no-wait"}).out,
            "counts_view will be rebuilt by its owner\n");
  auto rebuild = start(on({"rebuild", "counts_view"}));
  ASSERT_TRUE(rebuild->wait_for_err("nobody runs counts_view")) << rebuild->err();
  start_view();
  ends(*rebuild, 0);
  EXPECT_EQ(rows(), "6");
}

}  // namespace
}  // namespace baton::test
