// A forked child can neither use nor release what its parent holds, and ends without harm to it,
// whether it returns through its destructors or calls exit().

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/elector.h"
#include "baton/locks.h"
#include "support/postgres_database.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace {
bool in_child = false;
}

// Asked by the leak checker of the address sanitizer: what the parent's threads held has no owner
// in a child.
extern "C" int __lsan_is_turned_off() { return in_child ? 1 : 0; }  // NOLINT

namespace baton::test {
namespace {

using namespace std::chrono_literals;

const LockName kName{.subject = "report"};

// Runs it in a child. Gives the child's exit code, or nothing if it did not end by itself in time.
std::optional<int> in_a_child(const std::function<void()>& work) {
  std::fflush(nullptr);  // or the child would print it again
  const pid_t child = fork();
  if (child == 0) {
    in_child = true;
    work();
    _exit(77);
  }
  int status = 0;
  const bool ended = poll_until([&] { return waitpid(child, &status, WNOHANG) == child; });
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (!ended || !WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

class Fork : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "sqlite") {
      directory.emplace("baton-fork");
      url = "sqlite:" + (directory->path() / "locks.db").string();
    } else {
      database.emplace();
      database->migrate();
      url = database->url();
    }
    locks.emplace(open(url).value());
    lease.emplace(locks->acquire(kName, {.ttl = 60s}).value());
  }
  void TearDown() override {
    lease.reset();
    locks.reset();
    EXPECT_TRUE(open(url).value().try_acquire(kName)) << "it was not released";
  }
  void expect_parent_unharmed() {
    EXPECT_TRUE(lease->valid());
    EXPECT_TRUE(lease->set_note({.text = "still here"}));
    auto other = open(url).value();
    EXPECT_EQ(other.try_acquire(kName).error().code, Code::busy);
    EXPECT_TRUE(locks->acquire({.subject = "another"})) << "its connections work";
  }

  std::optional<TempDir> directory;
  std::optional<Database> database;
  std::string url;
  std::optional<LockClient> locks;
  std::optional<Lease> lease;
};

// Counts what is not as it should be.
int wrong_in_child(LockClient& locks, Lease& lease) {
  int wrong = 0;
  const auto check = [&](bool right) { wrong += right ? 0 : 1; };
  check(locks.inherited());
  check(!lease.valid());
  check(lease.remaining() == 0ms);
  check(lease.lost().stop_requested());
  check(lease.token() == 0);
  check(lease.why_lost().find("fork") != std::string::npos);
  check(lease.release().error().code == Code::lost);
  check(lease.set_note({.text = "mine"}).error().code == Code::lost);
  check(lease.convert(Mode::S).error().code == Code::lost);
  const auto refused = locks.acquire({.subject = "more"});
  check(!refused && refused.error().code == Code::bad_request);
  check(refused.error().message.find("fork") != std::string::npos);
  check(!locks.get(kName));
  check(!locks.find({}));
  check(!locks.break_lock(kName, {.reason = "because"}));
  bool called = false;
  locks.acquire_async({kName}, {}, [&](Result<Lease> answer) { called = !answer; });
  check(called);
  called = false;
  lease.release_async([&](Result<void> answer) { called = !answer; });
  check(called);
  return wrong;
}

TEST_P(Fork, a_child_can_neither_use_nor_release_what_its_parent_holds) {
  const auto code = in_a_child([&] {
    const int wrong = wrong_in_child(*locks, *lease);
    lease.reset();
    locks.reset();
    _exit(wrong);
  });
  EXPECT_EQ(code, 0);
  expect_parent_unharmed();
}

// Static objects are destroyed by exit().
std::unique_ptr<LockClient> static_locks;
std::unique_ptr<Lease> static_lease;
std::unique_ptr<Elector> static_elector;

TEST_P(Fork, a_child_that_calls_exit_ends_at_once_and_without_harm) {
  static_locks = std::make_unique<LockClient>(*locks);
  static_lease = std::make_unique<Lease>(std::move(*lease));
  static_elector = std::make_unique<Elector>(*locks, "fork");
  ASSERT_TRUE(static_elector->start({}));
  EXPECT_TRUE(poll_until([&] { return static_elector->is_leader(); }));
  const auto code = in_a_child([] { exit(0); });  // NOLINT: there are no threads
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(static_elector->is_leader());
  static_elector.reset();
  *lease = std::move(*static_lease);
  static_lease.reset();
  static_locks.reset();
  expect_parent_unharmed();
}

TEST_P(Fork, a_child_opens_a_client_of_its_own) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads after a fork";
#endif
  const auto code = in_a_child([&] {
    auto own = open(url);
    if (!own) _exit(1);
    if (own->try_acquire(kName).error().code != Code::busy) _exit(2);
    if (!own->try_acquire({.subject = "mine"})) _exit(3);
    _exit(0);
  });
  EXPECT_EQ(code, 0);
  expect_parent_unharmed();
}

INSTANTIATE_TEST_SUITE_P(Stores, Fork, ::testing::Values("sqlite", "postgres"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace baton::test
