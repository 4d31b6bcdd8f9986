// What is left when the machine itself crashes: of the log, only what was flushed. This program
// stands between SQLite and fdatasync, remembers how long the log was at each flush, and opens a
// copy of the file with only so much of it, under another boot.

#include <cerrno>
#include <filesystem>
#include <random>

#include <sys/syscall.h>
#include <unistd.h>

#include "integration/sqlite/sqlite_support.h"
#include "support/seed.h"

namespace {

std::atomic<int> flushes{0};
std::atomic<bool> disk_fails{false};
std::string log_path;        // NOLINT: set by the fixture
std::uintmax_t log_flushed;  // NOLINT

}  // namespace

// What libsqlite3 calls, because a program comes before its libraries.
extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  if (disk_fails) {
    errno = EIO;
    return -1;
  }
  ++flushes;
  std::error_code none;
  const auto size = std::filesystem::file_size(log_path, none);
  if (!none) log_flushed = size;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace baton::test {
namespace {

namespace fs = std::filesystem;

class SqliteCrashTest : public SqliteTest {
 protected:
  SqliteCrashTest() {
    log_path = path_ + "-wal";
    log_flushed = 0;
    disk_fails = false;
  }

  template <typename Work>
  int flushes_during(Work work) {
    const int before = flushes;
    work();
    return flushes - before;
  }

  // The store as it would be found after a power failure at this moment.
  std::unique_ptr<LockStore> after_a_crash() {
    const std::string copy = directory_ / ("crash" + std::to_string(++crashes_) + ".db");
    fs::copy_file(path_, copy);
    fs::copy_file(path_ + "-wal", copy + "-wal");
    fs::resize_file(copy + "-wal", log_flushed);
    return open({.path = copy, .boot_id = "boot " + std::to_string(crashes_)});
  }

  int crashes_ = 0;
};

TEST_F(SqliteCrashTest, grants_renewals_and_notes_are_flushed_and_plain_releases_are_not) {
  auto store = open();
  const Request first = acquire(kKey);
  EXPECT_EQ(flushes_during([&] { ask(*store, first); }), 1);
  EXPECT_EQ(flushes_during([&] { ask(*store, same(Verb::renew, first)); }), 1);
  EXPECT_EQ(flushes_during([&] { ask(*store, acquire(kKey)); }), 0) << "busy";
  const Request second = acquire(kKey, Millis(5'000));
  EXPECT_EQ(flushes_during([&] { ask(*store, second); }), 0) << "queued";
  EXPECT_EQ(flushes_during([&] { ask(*store, same(Verb::release, first)); }), 0) << "promotes";
  EXPECT_EQ(flushes_during([&] { ask(*store, same(Verb::claim, second)); }), 1);
  Request release = same(Verb::release, second);
  release.change.text = "done";
  EXPECT_EQ(flushes_during([&] { ask(*store, release); }), 1);
  Request cancel = same(Verb::cancel, acquire(kKey));
  EXPECT_EQ(flushes_during([&] { ask(*store, cancel); }), 0);
  cancel.tombstone_ttl = Millis(1'000);
  EXPECT_EQ(flushes_during([&] { ask(*store, cancel); }), 1);
}

TEST_F(SqliteCrashTest, a_batch_is_flushed_once) {
  auto store = open();
  std::vector<Request> batch;
  for (int i = 0; i < 16; ++i) batch.push_back(acquire("DEFAULT:a:" + std::to_string(i)));
  EXPECT_EQ(flushes_during([&] { (void)store->apply(batch, soon()).value(); }), 1);
}

TEST_F(SqliteCrashTest, a_grant_that_cannot_be_flushed_is_in_doubt) {
  auto store = open();
  const Request request = acquire(kKey);
  disk_fails = true;
  const auto replies = store->apply({&request, 1}, soon());
  disk_fails = false;
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::unavailable);
  EXPECT_TRUE(replies.error().in_doubt);
  EXPECT_EQ(ask(*store, request).outcome, Outcome::granted) << "asking again finds the grant";
}

// The reasoning behind unflushed releases: whatever token anybody was told is never drawn again,
// and a process that was told that it holds the lock is found holding it.
TEST_F(SqliteCrashTest, a_power_failure_never_takes_back_a_token_that_was_told) {
  std::mt19937 random(static_cast<unsigned>(seed_or(20261115)));
  auto store = open();
  std::vector<Request> alive;
  Token told = 0;
  int losses = 0;
  for (int step = 0; step < 120; ++step) {
    Request request = acquire(kKey, Millis(5'000));
    if (!alive.empty() && random() % 3 != 0) {
      const Verb verb = random() % 2 == 0 ? Verb::release : Verb::claim;
      request = same(verb, alive[random() % alive.size()]);
    }
    const Reply reply = ask(*store, request);
    for (const Token token : reply.tokens) told = std::max(told, token);
    if (request.verb == Verb::acquire) alive.push_back(request);
    if (request.verb == Verb::release) {
      std::erase_if(alive, [&](const Request& r) { return r.grant == request.grant; });
    }
    if (log_flushed != fs::file_size(path_ + "-wal")) ++losses;

    auto found = after_a_crash();
    if (reply.outcome == Outcome::granted) {
      const LockInfo info = look(*found, kKey);
      ASSERT_EQ(info.holders.size(), 1U) << "step " << step;
      EXPECT_EQ(info.holders[0].grant, request.grant);
      EXPECT_EQ(info.holders[0].token, reply.tokens.at(0));
    }
    const Reply next = ask(*found, acquire("DEFAULT:other"));
    ASSERT_EQ(next.outcome, Outcome::granted);
    EXPECT_GT(next.tokens.at(0), told) << "step " << step;
    advance(Millis(10));
  }
  EXPECT_GT(losses, 10) << "the test lost nothing, so it proved nothing";
  EXPECT_LT(fs::file_size(path_ + "-wal"), 1'000 * 4'096U) << "the log must not have started over";
}

}  // namespace
}  // namespace baton::test
