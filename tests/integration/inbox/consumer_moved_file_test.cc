// A consumer whose SQLite file is replaced or deleted while it is in use.

#include "consumer_fixture.h"

#include <filesystem>

#include <sqlite3.h>

namespace baton::test {
namespace {

using Kind = ConsumerNote::Kind;

class ConsumerMovedFile : public ConsumerTest {
 protected:
  [[nodiscard]] std::string path() const {
    return service_->url().substr(std::string("sqlite:").size());
  }
  // The test keeps no connection to it.
  void remove() {
    database_.reset();
    for (const char* of : {"", "-wal", "-shm"}) std::filesystem::remove(path() + of);
  }

  // As a restore does, with the tables or without.
  void replace(bool with_inbox) {
    const std::string restored = (dir_ / "restored.db").string();
    {
      const auto made = sql::Connection::open("sqlite:" + restored).value();
      if (with_inbox) install_inbox(made->sqlite()).value();
      made->script("CREATE TABLE effects (event_id TEXT, what TEXT)").value();
    }
    remove();
    std::filesystem::rename(restored, path());
    database_ = sql::Connection::open(service_->url()).value();
  }

  // A file that was removed stays for those who have it open.
  [[nodiscard]] static std::string effects(sqlite3* of) {
    sqlite3_stmt* count = nullptr;
    sqlite3_prepare_v2(of, "SELECT count(*) FROM effects", -1, &count, nullptr);
    std::string text = "none";
    if (sqlite3_step(count) == SQLITE_ROW) text = std::to_string(sqlite3_column_int(count, 0));
    sqlite3_finalize(count);
    return text;
  }
};

TEST_F(ConsumerMovedFile, after_it_was_replaced_events_are_handled_in_the_new_file) {
  sqlite3* old = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &old), SQLITE_OK);
  consume([](Handling& handling) {
    write_effect(handling);
    return done();
  });
  publish({event()});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(effects(old), "1");
  replace(true);
  publish({event(), event()});
  ASSERT_TRUE(notes_.wait(Kind::paused));
  EXPECT_NE(notes_.last_reason(Kind::paused).find("was deleted or replaced while in use"),
            std::string::npos);
  ASSERT_TRUE(notes_.wait(Kind::processed, 3));
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "2");
  EXPECT_EQ(ask("SELECT count(*) FROM processed_events"), "2");
  EXPECT_EQ(effects(old), "1");
  EXPECT_EQ(notes_.count(Kind::failed), 0);
  sqlite3_close(old);
}

TEST_F(ConsumerMovedFile, an_event_that_is_being_handled_is_handled_again_in_the_new_file) {
  sqlite3* old = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &old), SQLITE_OK);
  ASSERT_EQ(effects(old), "0");
  std::atomic<int> calls{0};
  consume([&](Handling& handling) {
    write_effect(handling);
    if (++calls == 1) replace(true);
    return done();
  });
  publish({event()});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "1");
  EXPECT_EQ(effects(old), "0");
  EXPECT_EQ(notes_.count(Kind::failed), 0);
  sqlite3_close(old);
}

TEST_F(ConsumerMovedFile, a_new_file_without_tables_is_waited_for_and_told) {
  consume([](Handling& handling) {
    write_effect(handling);
    return done();
  });
  publish({event()});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  replace(false);
  publish({event()});
  ASSERT_TRUE(poll_until([&] {
    return notes_.last_reason(Kind::paused).find("baton inbox install") != std::string::npos;
  })) << notes_.last_reason(Kind::paused);
  install_inbox(database_->sqlite()).value();
  ASSERT_TRUE(notes_.wait(Kind::processed, 2));
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "1");
}

TEST_F(ConsumerMovedFile, a_deleted_file_is_waited_for_and_told) {
  consume([](Handling& handling) {
    write_effect(handling);
    return done();
  });
  publish({event()});
  ASSERT_TRUE(notes_.wait(Kind::processed));
  const std::string restored = (dir_ / "restored.db").string();
  database_->query("VACUUM INTO '" + restored + "'").value();
  remove();
  publish({event()});
  ASSERT_TRUE(poll_until([&] {
    return notes_.last_reason(Kind::paused).find("there is no file") != std::string::npos;
  })) << notes_.last_reason(Kind::paused);
  std::filesystem::rename(restored, path());
  ASSERT_TRUE(notes_.wait(Kind::processed, 2));
  database_ = sql::Connection::open(service_->url()).value();
  EXPECT_EQ(ask("SELECT count(*) FROM effects"), "2");
}

}  // namespace
}  // namespace baton::test
