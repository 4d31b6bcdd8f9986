// What the SQLite store promises beyond the conformance suite: to other connections, over restarts
// and reboots, and about what it writes.

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include "integration/sqlite/sqlite_support.h"
#include "store/sqlite/wake_files.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;
using SqliteStoreTest = SqliteTest;

TEST_F(SqliteStoreTest, two_stores_on_one_file_exclude_each_other) {
  auto one = open();
  auto two = open();
  const Request mine = acquire(kKey);
  ASSERT_EQ(ask(*one, mine).outcome, Outcome::granted);
  const Reply busy = ask(*two, acquire(kKey));
  EXPECT_EQ(busy.outcome, Outcome::busy);
  ASSERT_EQ(busy.holders.size(), 1U);
  EXPECT_EQ(busy.holders[0].grant, mine.grant);
  EXPECT_EQ(ask(*one, same(Verb::release, mine)).outcome, Outcome::done);
  EXPECT_EQ(ask(*two, acquire(kKey)).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, a_try_on_a_busy_lock_writes_nothing) {
  auto store = open();
  ASSERT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::granted);
  Outsider outsider(path_);
  const std::string version = outsider.run("PRAGMA data_version");
  const auto log = fs::file_size(path_ + "-wal");
  EXPECT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::busy);
  EXPECT_EQ(look(*store, kKey).holders.size(), 1U);
  EXPECT_EQ(outsider.run("PRAGMA data_version"), version);
  EXPECT_EQ(fs::file_size(path_ + "-wal"), log);
}

TEST_F(SqliteStoreTest, a_released_lock_leaves_no_row) {
  auto store = open();
  const Request mine = acquire(kKey);
  ask(*store, mine);
  Outsider outsider(path_);
  EXPECT_EQ(outsider.run("SELECT count(*) FROM baton_lock"), "1");
  ask(*store, same(Verb::release, mine));
  EXPECT_EQ(outsider.run("SELECT count(*) FROM baton_lock"), "0");
}

TEST_F(SqliteStoreTest, grants_nobody_released_are_swept_in_the_end) {
  auto store = open();
  for (int i = 0; i < 100; ++i) ask(*store, acquire("DEFAULT:a:" + std::to_string(i)));
  advance(Millis(10'000));
  for (int i = 0; i < 1'000; ++i) {
    ask(*store, acquire("DEFAULT:a:" + std::to_string(1'000 + i)));
    advance(Millis(10'000));
  }
  Outsider outsider(path_);
  EXPECT_LT(std::stoi(outsider.run("SELECT count(*) FROM baton_lock")), 400);
}

TEST_F(SqliteStoreTest, tokens_and_notes_survive_a_restart) {
  Token last = 0;
  {
    auto store = open();
    Request mine = acquire(kKey);
    mine.change = {.ordinal = 7, .text = "half done"};
    last = ask(*store, mine).tokens.at(0);
    ask(*store, same(Verb::release, mine));
  }
  auto store = open();
  const Reply reply = ask(*store, acquire(kKey));
  EXPECT_EQ(reply.outcome, Outcome::granted);
  EXPECT_GT(reply.tokens.at(0), last);
  EXPECT_EQ(reply.note, (Note{7, "half done"}));
}

TEST_F(SqliteStoreTest, a_grant_survives_the_restart_of_its_process) {
  const Request mine = acquire(kKey);
  ask(*open(), mine);
  auto store = open();
  EXPECT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::busy);
  EXPECT_EQ(ask(*store, same(Verb::renew, mine)).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, after_a_reboot_everybody_has_a_full_period_again) {
  const Request holder = acquire(kKey);
  const Request waiter = acquire(kKey, Millis(5'000));
  Request cancel = same(Verb::cancel, acquire("DEFAULT:other"));
  cancel.tombstone_ttl = Millis(1'000);
  Token before = 0;
  {
    auto store = open({.boot_id = "first"});
    before = ask(*store, holder).tokens.at(0);
    EXPECT_EQ(ask(*store, waiter).outcome, Outcome::queued);
    ask(*store, cancel);
  }
  micros_ = 5'000'000;  // the clock starts again at a boot
  auto store = open({.boot_id = "second"});
  const LockInfo info = look(*store, kKey);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].expires_in, Millis(10'000));
  EXPECT_EQ(info.holders[0].held_for, Millis(0));
  EXPECT_EQ(info.waiting, 1U);
  EXPECT_EQ(ask(*store, same(Verb::acquire, cancel)).outcome, Outcome::invalid);
  Request late = acquire("DEFAULT:other");
  late.grant = cancel.grant;
  EXPECT_EQ(ask(*store, late).outcome, Outcome::lost);

  advance(Millis(9'999));
  EXPECT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::busy);
  advance(Millis(10'000));
  const Reply next = ask(*store, acquire(kKey));
  EXPECT_EQ(next.outcome, Outcome::granted);
  EXPECT_GT(next.tokens.at(0), before);
}

TEST_F(SqliteStoreTest, a_reader_that_comes_first_after_a_reboot_sees_the_holder) {
  ask(*open({.boot_id = "first"}), acquire(kKey));
  advance(Millis(60'000));
  auto store = open({.boot_id = "second"});
  EXPECT_EQ(store->find({}, soon()).value().items.size(), 1U);
  EXPECT_EQ(Outsider(path_).run("SELECT boot_id FROM baton_meta"), "second");
}

// A reboot ends every process, so what this one finds is another container's boot id.
TEST_F(SqliteStoreTest, a_mix_of_boot_ids_is_refused_and_keeps_no_dead_lock_alive) {
  auto store = open({.boot_id = "first"});
  ask(*store, acquire(kKey));
  auto other = open({.boot_id = "second"});
  advance(Millis(6'000));
  const auto refused = [&](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::bad_store);
    EXPECT_NE(answer.error().message.find("boot id"), std::string::npos) << answer.error().message;
  };
  Request looking;
  looking.targets = {{kKey, Mode::X}};
  const Request changing = acquire("DEFAULT:other");
  refused(store->find({}, soon()));
  refused(store->apply({&looking, 1}, soon()));
  refused(store->apply({&changing, 1}, soon()));
  advance(Millis(6'000));
  EXPECT_EQ(ask(*other, acquire(kKey)).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, a_mix_of_time_namespaces_is_refused) {
  auto store = open({.time_namespace = "time:[1]"});
  auto other = store::open_sqlite_store_with({.path = path_, .time_namespace = "time:[2]"}, soon());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::bad_store);
  EXPECT_NE(other.error().message.find("time namespace"), std::string::npos);
  EXPECT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, another_time_namespace_is_fine_after_a_reboot) {
  open({.boot_id = "first", .time_namespace = "time:[1]"});
  auto store = open({.boot_id = "second", .time_namespace = "time:[2]"});
  EXPECT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, a_damaged_document_is_refused_not_free) {
  auto store = open();
  ask(*store, acquire(kKey));
  Outsider outsider(path_);
  for (const std::string document : {"{\"holders\":[{}]}", "{", "", "[]", "null", "{\"holder\":[]}",
                                     "{\"holders\":{}}", "{\"holders\":null}"}) {
    outsider.run("UPDATE baton_lock SET doc = '" + document + "'");
    const std::vector<Request> batch = {acquire(kKey), acquire("DEFAULT:sound")};
    const auto replies = store->apply(batch, soon()).value();
    EXPECT_EQ(replies[0].outcome, Outcome::denied) << document;
    EXPECT_NE(replies[0].message.find("damaged"), std::string::npos);
    EXPECT_EQ(replies[1].outcome, Outcome::granted) << "one bad name never harms the others";
    ask(*store, same(Verb::release, batch[1]));
    EXPECT_EQ(outsider.run("SELECT doc FROM baton_lock"), document);
    const auto found = store->find({}, soon());
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->items.size(), 1U);
    EXPECT_NE(found->items[0].damage, "") << document;
  }
}

TEST_F(SqliteStoreTest, a_file_replaced_while_open_is_refused) {
  auto store = open();
  ask(*store, acquire(kKey));
  fs::remove(path_);
  const Request request = acquire(kKey);
  const auto replies = store->apply({&request, 1}, soon());
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::bad_store);
}

TEST_F(SqliteStoreTest, a_call_returns_by_its_deadline_when_another_process_has_the_file) {
  auto store = open();
  Outsider outsider(path_);
  EXPECT_EQ(outsider.run("BEGIN IMMEDIATE"), "");
  const Request request = acquire(kKey);
  const auto before = BootClock::now();
  const auto replies = store->apply({&request, 1}, before + std::chrono::milliseconds(50));
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::unavailable);
  EXPECT_TRUE(replies.error().retryable);
  EXPECT_FALSE(replies.error().in_doubt);
  EXPECT_LT(BootClock::now() - before, patience);
  EXPECT_TRUE(look(*store, kKey).holders.empty()) << "readers do not wait for writers";
  outsider.run("COMMIT");
  EXPECT_EQ(ask(*store, request).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, a_waiter_of_another_store_is_woken_by_name) {
  auto here = open();
  auto there = open();
  Ear ear;
  Ear deaf;
  const auto watch = there->watch("there", ear);
  const auto other_watch = there->watch("somebody else", deaf);
  const Request holder = acquire(kKey);
  Request waiter = acquire(kKey, Millis(5'000));
  waiter.channel = "there";
  ask(*here, holder);
  ASSERT_EQ(ask(*there, waiter).outcome, Outcome::queued);
  ask(*here, same(Verb::release, holder));
  ASSERT_TRUE(ear.wait());
  EXPECT_EQ(ear.heard(), std::vector{waiter.grant});
  EXPECT_EQ(deaf.calls(), 0);
  EXPECT_EQ(ask(*there, same(Verb::claim, waiter)).outcome, Outcome::granted);
}

TEST_F(SqliteStoreTest, wake_files_go_with_their_watches_and_dead_ones_are_swept) {
  const fs::path directory = path_ + "-wake";
  const auto files = [&] {
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  };
  fs::create_directory(directory);
  Outsider(directory / "0123456789abcdef").run("CREATE TABLE t(a)");
  ASSERT_EQ(files(), 1) << "somebody died here";
  auto store = open();
  Ear ear;
  auto one = store->watch("one", ear);
  auto again = store->watch("one", ear);
  EXPECT_EQ(files(), 1) << "only ours";
  auto two = store->watch("two", ear);
  EXPECT_EQ(files(), 2);
  one.reset();
  EXPECT_EQ(files(), 2);
  again.reset();
  EXPECT_EQ(files(), 1);
  store.reset();
  two.reset();
  EXPECT_EQ(files(), 0);
}

// One process waits, another one releases: the lock passes on, with or without wake-ups.
void expect_locks_to_work(LockStore& here, LockStore& there) {
  Ear ear;
  const auto watch = there.watch("there", ear);
  const Request holder = acquire(kKey);
  Request waiter = acquire(kKey, Millis(5'000));
  waiter.channel = "there";
  ASSERT_EQ(ask(here, holder).outcome, Outcome::granted);
  ASSERT_EQ(ask(there, waiter).outcome, Outcome::queued);
  ask(here, same(Verb::release, holder));
  ASSERT_EQ(ask(there, same(Verb::claim, waiter)).outcome, Outcome::granted);
  ask(there, same(Verb::release, waiter));
}

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(SqliteStoreTest, nothing_that_stands_in_the_place_of_the_wake_directory_is_touched) {
  const fs::path place = path_ + "-wake";
  const fs::path theirs = directory_ / "theirs";
  const std::string name = store::sqlite::wake_file_name("there");
  fs::create_directory(theirs);
  std::ofstream(theirs / name) << "theirs";
  const auto untouched = [&] {
    return std::distance(fs::directory_iterator(theirs), {}) == 1 &&
           contents(theirs / name) == "theirs";
  };
  const std::vector<std::pair<const char*, std::function<bool()>>> attacks = {
      {"a link to a directory", [&] { return ::symlink(theirs.c_str(), place.c_str()) == 0; }},
      {"a link to a file", [&] { return ::symlink((theirs / name).c_str(), place.c_str()) == 0; }},
      {"a link to nothing", [&] { return ::symlink("/nowhere/at/all", place.c_str()) == 0; }},
      {"a FIFO", [&] { return ::mkfifo(place.c_str(), 0666) == 0; }},
      {"a file", [&] { return static_cast<bool>(std::ofstream(place) << "theirs"); }},
      {"a directory that everybody can write",
       [&] {
         fs::copy(theirs, place);
         fs::permissions(place, fs::perms::all);
         return true;
       }},
      {"a directory of another user",
       [&] {
         fs::copy(theirs, place);
         if (::geteuid() == 0) return ::chown(place.c_str(), 65534, 65534) == 0;
         fs::permissions(place, fs::perms::all);
         return true;
       }},
  };
  for (const auto& [what, attack] : attacks) {
    SCOPED_TRACE(what);
    ASSERT_TRUE(attack());
    struct stat before {};
    ASSERT_EQ(::lstat(place.c_str(), &before), 0);
    expect_locks_to_work(*open(), *open());
    struct stat after {};
    ASSERT_EQ(::lstat(place.c_str(), &after), 0);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_EQ(after.st_size, before.st_size);
    EXPECT_TRUE(untouched());
    if (S_ISDIR(after.st_mode)) {
      EXPECT_EQ(contents(place / name), "theirs");
    }
    fs::remove_all(place);
  }
}

TEST_F(SqliteStoreTest, nothing_in_the_wake_directory_is_touched_that_is_not_a_wake_file) {
  const fs::path place = path_ + "-wake";
  const fs::path victim = directory_ / "victim";
  std::ofstream(victim) << "theirs";
  fs::create_directory(place);
  fs::permissions(place, fs::perms::owner_all);
  const std::string ours = store::sqlite::wake_file_name("there");
  std::ofstream(place / "notes.txt") << "theirs";
  std::ofstream(place / "0123456789ABCDEF") << "theirs";
  fs::create_symlink(victim, place / "0000000000000001");
  ASSERT_EQ(::mkfifo((place / "0000000000000002").c_str(), 0600), 0);
  fs::create_hard_link(victim, place / "0000000000000003");
  fs::create_directory(place / "0000000000000004");
  const auto entries = [&] { return std::distance(fs::directory_iterator(place), {}); };
  ASSERT_EQ(entries(), 6);
  for (const auto& put : std::vector<std::function<void()>>{
           [&] { fs::create_symlink(victim, place / ours); },
           [&] { fs::create_hard_link(victim, place / ours); },
           [&] { ASSERT_EQ(::mkfifo((place / ours).c_str(), 0600), 0); }}) {
    put();
    expect_locks_to_work(*open(), *open());
    EXPECT_EQ(entries(), 7);
    EXPECT_EQ(contents(victim), "theirs");
    EXPECT_EQ(contents(place / "notes.txt"), "theirs");
    fs::remove(place / ours);
  }
}

TEST_F(SqliteStoreTest, a_wake_file_does_not_grow_for_ever) {
  store::sqlite::WakeFiles speaker(directory_ / "wake", {.owner = ::geteuid()});
  auto listener = std::make_shared<store::sqlite::WakeFiles>(
      directory_ / "wake", store::sqlite::Access{.owner = ::geteuid()});
  Ear ear;
  const auto watch = listener->watch("there", ear);
  const auto file = fs::directory_iterator(directory_ / "wake")->path();
  for (int i = 0; i < 20'000; ++i) speaker.wake({{"there", new_grant_id()}});
  EXPECT_TRUE(poll_until([&] { return fs::file_size(file) < (1 << 16); }));
}

TEST_F(SqliteStoreTest, dropped_wakeups_reach_nobody) {
  auto store = open({.drop_wakeups = true});
  Ear ear;
  const auto watch = store->watch("this process", ear);
  const Request holder = acquire(kKey);
  const Request waiter = acquire(kKey, Millis(5'000));
  ask(*store, holder);
  ask(*store, waiter);
  ask(*store, same(Verb::release, holder));
  EXPECT_EQ(ask(*store, same(Verb::claim, waiter)).outcome, Outcome::granted);
  EXPECT_EQ(ear.calls(), 0);
}

TEST_F(SqliteStoreTest, many_threads_share_a_store) {
  auto store = open();
  int counter = 0;  // guarded by the lock under test alone
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50;) {
        const Request mine = acquire(kKey);
        if (ask(*store, mine).outcome != Outcome::granted) continue;
        ++counter;
        ++i;
        ask(*store, same(Verb::release, mine));
        (void)store->find({}, soon()).value();
      }
      ++done;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 4);
  EXPECT_EQ(counter, 200);
}

}  // namespace
}  // namespace baton::test
