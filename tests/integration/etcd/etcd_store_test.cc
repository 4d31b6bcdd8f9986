// What one process sees of another one's locks. Each store object is a process of its own to etcd.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "conformance/harness.h"
#include "store/etcd/etcd_store.h"
#include "support/etcd_server.h"
#include "support/fault_proxy.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

const std::string kName = "DEFAULT:job:1";
const std::string kOther = "DEFAULT:job:2";

class EtcdStore : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<EtcdServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static inline std::unique_ptr<EtcdServer> server_;
  static inline int prefixes_ = 0;
  const std::string url_ = server_->url("/p" + std::to_string(++prefixes_));

  [[nodiscard]] std::unique_ptr<LockStore> process() const {
    return open_etcd_store(url_, soon()).value();
  }
  // One that dies: its time is over by its own clock never, and nobody keeps its lease.
  static Reply ask(LockStore& store, const Request& request) {
    auto replies = store.apply({&request, 1}, soon());
    EXPECT_TRUE(replies) << replies.error().message;
    return replies ? replies->at(0) : Reply{};
  }
  static Outcome outcome(LockStore& store, const Request& request) {
    return ask(store, request).outcome;
  }
  static Request brief(std::uint64_t number, const std::string& key, Millis queue_ttl = Millis{0}) {
    Request request = acquire(number, key, Mode::X, queue_ttl);
    request.ttl = 1000ms;
    return request;
  }
  // What etcd itself is told, past the store; it must have done it.
  static std::string tell(const std::string& path, const std::string& body) {
    std::string answer = server_->post(0, path, body);
    if (answer.find(" 200 ") == std::string::npos) throw std::runtime_error(path + ": " + answer);
    return answer;
  }
  // A number that etcd leaves out if it is 0.
  static std::size_t number(const std::string& answer, const std::string& name) {
    const auto at = answer.find("\"" + name + "\":\"");
    return at == std::string::npos ? 0 : std::stoul(answer.substr(at + name.size() + 4));
  }
  static std::size_t revision() {
    return number(tell("/v3/kv/range", R"({"key":"eA=="})"), "revision");
  }
  // What is left in etcd below the prefix of this test.
  [[nodiscard]] std::size_t keys_left() const {
    const std::string prefix = "p" + std::to_string(prefixes_) + "/";
    std::string end = prefix;
    ++end.back();
    return number(tell("/v3/kv/range", R"({"key":")" + base64(prefix) + R"(","range_end":")" +
                                           base64(end) + R"(","count_only":true})"),
                  "count");
  }
  // Its holder and its waiter are gone, and nobody keeps their leases.
  void leave_a_contended_name() const {
    const store::EtcdOptions options{.url = url_, .revoke_at_end = true};
    const auto a = store::open_etcd_store(options, soon()).value();
    const auto b = store::open_etcd_store(options, soon()).value();
    ASSERT_EQ(outcome(*a, acquire(1, kName)), Outcome::granted);
    ASSERT_EQ(outcome(*b, acquire(2, kName, Mode::X, kQueueTtl)), Outcome::queued);
  }
  static std::string base64(const std::string& text) {
    static constexpr char kAlphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    unsigned bits = 0;
    int count = 0;
    for (const unsigned char c : text) {
      bits = bits << 8 | c;
      for (count += 8; count >= 6; count -= 6) out += kAlphabet[bits >> (count - 6) & 63];
    }
    if (count > 0) out += kAlphabet[bits << (6 - count) & 63];
    while (out.size() % 4 != 0) out += '=';
    return out;
  }
};

class Bell final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override {
    const std::lock_guard lock(mutex_);
    woken_.insert(woken_.end(), grants.begin(), grants.end());
    ready_ = ready_ || grants.empty();
    signal_.notify_all();
  }
  bool rang_for(GrantId grant) {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] {
      return std::find(woken_.begin(), woken_.end(), grant) != woken_.end();
    });
  }
  // The watch is on: everything from now on is heard.
  bool is_ready() {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] { return ready_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  std::vector<GrantId> woken_;
  bool ready_ = false;
};

TEST_F(EtcdStore, processes_exclude_each_other_and_tokens_grow) {
  const auto a = process();
  const auto b = process();
  Token last = 0;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    LockStore& mine = i % 2 == 0 ? *a : *b;
    LockStore& theirs = i % 2 == 0 ? *b : *a;
    const Reply granted = ask(mine, acquire(i, kName));
    ASSERT_EQ(granted.outcome, Outcome::granted);
    EXPECT_GT(granted.tokens.at(0), last);
    last = granted.tokens[0];
    const Reply busy = ask(theirs, acquire(100 + i, kName));
    EXPECT_EQ(busy.outcome, Outcome::busy);
    ASSERT_EQ(busy.holders.size(), 1U);
    EXPECT_EQ(busy.holders[0].token, last);
    EXPECT_GT(busy.retry_after, 0ms);
    EXPECT_EQ(outcome(theirs, same_targets(Verb::renew, acquire(100 + i, kName))), Outcome::lost);
    EXPECT_EQ(outcome(mine, same_targets(Verb::renew, acquire(i, kName))), Outcome::granted);
    EXPECT_EQ(outcome(mine, same_targets(Verb::release, acquire(i, kName))), Outcome::done);
  }
  EXPECT_EQ(keys_left(), 0U) << "a released name costs nothing";
}

TEST_F(EtcdStore, a_released_lock_is_handed_to_a_waiter_of_another_process_and_wakes_it) {
  const auto a = process();
  const auto b = process();
  Bell bell;
  const auto watch = b->watch("process-2", bell);
  ASSERT_TRUE(bell.is_ready());
  const Token before = ask(*a, acquire(1, kName)).tokens.at(0);
  ASSERT_EQ(outcome(*b, acquire(2, kName, Mode::X, kQueueTtl)), Outcome::queued);
  ASSERT_EQ(outcome(*a, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
  EXPECT_TRUE(bell.rang_for(grant(2)));
  const Reply claimed = ask(*b, same_targets(Verb::claim, acquire(2, kName)));
  EXPECT_EQ(claimed.outcome, Outcome::granted);
  EXPECT_GT(claimed.tokens.at(0), before);
  EXPECT_EQ(outcome(*a, acquire(3, kName)), Outcome::busy);
}

TEST_F(EtcdStore, the_lock_of_a_dead_process_is_free_when_etcd_ends_its_lease) {
  auto a = process();
  const auto b = process();
  const Token before = ask(*a, brief(1, kName)).tokens.at(0);
  a.reset();  // with a grant left, it says no good-bye
  EXPECT_EQ(outcome(*b, brief(2, kName)), Outcome::busy);
  Reply granted;
  ASSERT_TRUE(poll_until([&] {
    granted = ask(*b, brief(2, kName));
    return granted.outcome == Outcome::granted;
  }));
  EXPECT_GT(granted.tokens.at(0), before);
}

TEST_F(EtcdStore, a_dead_process_leaves_nothing_behind) {
  auto a = process();
  ASSERT_EQ(outcome(*a, brief(1, kName)), Outcome::granted);
  ASSERT_EQ(outcome(*a, brief(2, kOther)), Outcome::granted);
  EXPECT_EQ(keys_left(), 4U);
  a.reset();
  EXPECT_TRUE(poll_until([&] { return keys_left() == 0; }));
}

// Such a name hangs on no lease: somebody has to sweep it up.
TEST_F(EtcdStore, a_contended_name_whose_processes_all_died_is_swept_up) {
  leave_a_contended_name();
  const auto c = store::open_etcd_store({.url = url_, .sweep_every = 10ms}, soon()).value();
  EXPECT_TRUE(poll_until([&] {
    Request look = same_targets(Verb::get, acquire(3, kOther));
    EXPECT_EQ(outcome(*c, look), Outcome::done);
    return keys_left() == 0;
  }));
}

TEST_F(EtcdStore, a_name_with_more_keys_than_a_page_does_not_keep_others_from_being_swept_up) {
  const std::string large = "p" + std::to_string(prefixes_) + "/n/DEFAULT:a";
  for (std::uint64_t i = 0; i < 600;) {
    std::string puts;
    for (const std::uint64_t end = i + 100; i < end; ++i) {
      const std::string mark = large + '\0' + to_string(grant(i)) + 'g';
      puts += (puts.empty() ? "" : ",") + (R"({"request_put":{"key":")" + base64(mark) + R"("}})");
    }
    tell("/v3/kv/txn", R"({"success":[)" + puts + "]}");
  }
  ASSERT_EQ(keys_left(), 600U);
  leave_a_contended_name();
  const auto c = store::open_etcd_store({.url = url_, .sweep_every = 10ms}, soon()).value();
  EXPECT_TRUE(poll_until([&] {
    EXPECT_EQ(outcome(*c, same_targets(Verb::get, acquire(3, kOther))), Outcome::done);
    return keys_left() == 600;
  }));
}

TEST_F(EtcdStore, a_note_outlives_the_process_that_wrote_it) {
  auto a = process();
  const auto b = process();
  Request first = brief(1, kName);
  first.change = {.ordinal = 7, .text = "seven"};
  ASSERT_EQ(outcome(*a, first), Outcome::granted);
  a.reset();
  Reply granted;
  ASSERT_TRUE(poll_until([&] {
    granted = ask(*b, brief(2, kName));
    return granted.outcome == Outcome::granted;
  }));
  EXPECT_EQ(granted.note, (Note{7, "seven"}));
}

TEST_F(EtcdStore, a_dead_waiter_is_passed_over) {
  const auto a = process();
  auto dead = process();
  const auto c = process();
  ASSERT_EQ(outcome(*a, acquire(1, kName)), Outcome::granted);
  ASSERT_EQ(outcome(*dead, brief(2, kName, 1000ms)), Outcome::queued);
  ASSERT_EQ(outcome(*c, acquire(3, kName, Mode::X, kQueueTtl)), Outcome::queued);
  dead.reset();
  ASSERT_EQ(outcome(*a, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
  Request claim = same_targets(Verb::claim, acquire(3, kName));
  claim.queue_ttl = kQueueTtl;
  EXPECT_TRUE(poll_until([&] { return outcome(*c, claim) == Outcome::granted; }));
}

// Its process lives and keeps its lease, but does not come for the lock.
TEST_F(EtcdStore, a_waiter_that_does_not_claim_is_passed_over_by_those_who_watch) {
  const auto a = process();
  const auto slow = process();
  const auto c = process();
  ASSERT_EQ(outcome(*a, acquire(1, kName)), Outcome::granted);
  Request waiter = acquire(2, kName, Mode::X, std::chrono::minutes(10));
  waiter.ttl = std::chrono::minutes(10);
  waiter.claim_within = 300ms;
  ASSERT_EQ(outcome(*slow, waiter), Outcome::queued);
  ASSERT_EQ(outcome(*c, acquire(3, kName, Mode::X, kQueueTtl)), Outcome::queued);
  ASSERT_EQ(outcome(*a, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
  Request claim = same_targets(Verb::claim, acquire(3, kName));
  claim.queue_ttl = kQueueTtl;
  EXPECT_TRUE(poll_until([&] { return outcome(*c, claim) == Outcome::granted; }));
  EXPECT_EQ(outcome(*slow, same_targets(Verb::claim, waiter)), Outcome::lost);
}

TEST_F(EtcdStore, at_least_for_holds_even_if_the_process_dies) {
  auto a = process();
  const auto b = process();
  Request request = brief(1, kName);
  request.at_least_for = 6s;
  ASSERT_EQ(outcome(*a, request), Outcome::granted);
  const auto began = BootClock::now();
  a.reset();
  // Its lease of two seconds is long gone when this ends.
  ASSERT_TRUE(poll_until([&] { return outcome(*b, brief(2, kName)) == Outcome::granted; }));
  EXPECT_GE(BootClock::now() - began, 6s);
}

TEST_F(EtcdStore, at_least_for_holds_after_a_release_for_processes_that_come_later) {
  auto a = process();
  Request request = brief(1, kName);
  request.at_least_for = 3s;
  ASSERT_EQ(outcome(*a, request), Outcome::granted);
  const auto began = BootClock::now();
  ASSERT_EQ(outcome(*a, same_targets(Verb::release, request)), Outcome::done);
  a.reset();
  // Each try is a process that has never seen the lock before.
  ASSERT_TRUE(poll_until([&] { return outcome(*process(), brief(2, kName)) == Outcome::granted; },
                         patience, 100ms));
  EXPECT_GE(BootClock::now() - began, 3s);
}

TEST_F(EtcdStore, a_lock_broken_by_another_process_is_told_at_the_renewal) {
  const auto a = process();
  const auto b = process();
  Bell bell;
  const auto watch = a->watch("process-1", bell);
  ASSERT_TRUE(bell.is_ready());
  ASSERT_EQ(outcome(*a, acquire(1, kName)), Outcome::granted);
  Request breaking;
  breaking.verb = Verb::break_;
  breaking.targets = {{kName, Mode::X}};
  breaking.reason = "stuck";
  EXPECT_EQ(ask(*b, breaking).holders.size(), 1U);
  EXPECT_TRUE(bell.rang_for(grant(1)));
  const Reply told = ask(*a, same_targets(Verb::renew, acquire(1, kName)));
  EXPECT_EQ(told.outcome, Outcome::lost);
  EXPECT_NE(told.message.find("stuck"), std::string::npos);
  EXPECT_EQ(outcome(*b, acquire(2, kName)), Outcome::busy);
  EXPECT_EQ(outcome(*a, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
  EXPECT_EQ(outcome(*b, acquire(2, kName)), Outcome::granted);
  breaking.immediately = true;
  ASSERT_EQ(outcome(*a, breaking), Outcome::done);
  EXPECT_EQ(outcome(*b, same_targets(Verb::renew, acquire(2, kName))), Outcome::lost);
}

// The orphan of a process whose other locks keep the shared lease alive.
TEST_F(EtcdStore, a_lock_that_nobody_renews_ends_although_its_lease_lives_on) {
  const auto a = process();
  const auto b = process();
  ASSERT_EQ(outcome(*a, brief(1, kName)), Outcome::granted);
  ASSERT_EQ(outcome(*a, brief(2, kOther)), Outcome::granted);
  ASSERT_TRUE(poll_until(
      [&] {
        EXPECT_EQ(outcome(*a, same_targets(Verb::renew, brief(2, kOther))), Outcome::granted);
        return outcome(*b, brief(3, kName)) == Outcome::granted;
      },
      patience, 50ms));
  EXPECT_EQ(outcome(*a, same_targets(Verb::renew, brief(1, kName))), Outcome::lost);
}

TEST_F(EtcdStore, a_revoked_lease_is_lost_and_the_process_goes_on_with_another) {
  const auto a = process();
  ASSERT_EQ(outcome(*a, acquire(1, kName)), Outcome::granted);
  const std::string leases = tell("/v3/lease/leases", "{}");
  for (std::size_t at = 0; (at = leases.find(R"("ID":")", at)) != std::string::npos;) {
    at += 6;
    const std::string id = leases.substr(at, leases.find('"', at) - at);
    tell("/v3/lease/revoke", R"({"ID":")" + id + R"("})");
  }
  EXPECT_EQ(outcome(*a, same_targets(Verb::renew, acquire(1, kName))), Outcome::lost);
  EXPECT_EQ(outcome(*a, acquire(2, kName)), Outcome::granted);
  EXPECT_EQ(outcome(*process(), acquire(3, kName)), Outcome::busy);
}

// A process behind a bad line, by a clock of its own.
class EtcdStoreBehindALine : public EtcdStore {
 protected:
  ManualTime time_;
  FaultProxy line_{std::stoi(server_->endpoint().substr(server_->endpoint().find(':') + 1))};
  const std::string path_ = url_.substr(url_.rfind('/'));
  const std::unique_ptr<LockStore> behind_ = opened("127.0.0.1:" + std::to_string(line_.port()));

  [[nodiscard]] std::unique_ptr<LockStore> opened(const std::string& endpoints) const {
    return store::open_etcd_store({.url = "etcd://" + endpoints + path_ + "?apply_timeout=20s",
                                   .now = [this] { return time_.now(); },
                                   .least_lease = std::chrono::minutes(10)},
                                  soon())
        .value();
  }
  // What the line held back arrives after all.
  void arrive_late() const {
    const std::string request = line_.held();
    tell("/v3/kv/txn", request.substr(request.find("\r\n\r\n") + 4));
  }
  // The line holds its write back.
  void leave_unanswered(LockStore& store, const Request& request) {
    line_.hold("request_put");
    ASSERT_TRUE(poll_until([&] {
      const auto replies = store.apply({&request, 1}, BootClock::now() + 2s);
      return !replies && replies.error().in_doubt;  // else it did not come so far
    }));
    ASSERT_TRUE(poll_until([&] { return !line_.held().empty(); }));
  }

  // A waiter whose queue_ttl has passed is handed the lock and comes for it while another thread is
  // about to remove its mark.
  void claim_while_its_mark_is_removed(LockStore& holder, std::jthread& remover,
                                       Deadline patience) {
    const Request waiter = acquire(2, kName, Mode::X, kQueueTtl);
    ASSERT_EQ(outcome(holder, acquire(1, kName)), Outcome::granted);
    ASSERT_EQ(outcome(*behind_, waiter), Outcome::queued);
    time_.advance(kQueueTtl + 1s);
    line_.hold("request_delete_range");
    remover = std::jthread([this, patience] {
      const Request other = acquire(3, kOther);
      [[maybe_unused]] const auto replies = behind_->apply({&other, 1}, patience);
    });
    ASSERT_TRUE(poll_until([&] { return !line_.held().empty(); }));
    ASSERT_EQ(outcome(holder, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
    ASSERT_EQ(outcome(*behind_, same_targets(Verb::claim, waiter)), Outcome::granted);
  }
};

TEST_F(EtcdStoreBehindALine, a_mark_removed_late_is_not_that_of_a_waiter_who_holds_by_now) {
  const auto holder = process();
  std::jthread remover;
  claim_while_its_mark_is_removed(*holder, remover, soon());
  arrive_late();
  EXPECT_EQ(outcome(*process(), acquire(4, kName)), Outcome::busy);
  line_.reset();
}

TEST_F(EtcdStoreBehindALine, a_removal_that_failed_does_not_end_a_waiter_who_holds_by_now) {
  const auto holder = process();
  std::jthread remover;
  claim_while_its_mark_is_removed(*holder, remover, BootClock::now() + 5s);
  remover.join();  // when its time is over
  EXPECT_EQ(outcome(*behind_, acquire(5, kOther)), Outcome::granted);
  EXPECT_EQ(outcome(*process(), acquire(4, kName)), Outcome::busy);
  EXPECT_EQ(outcome(*behind_, same_targets(Verb::renew, acquire(2, kName))), Outcome::granted);
}

TEST_F(EtcdStoreBehindALine, a_release_that_was_carried_out_is_in_doubt_and_not_lost) {
  ASSERT_EQ(outcome(*behind_, acquire(1, kName)), Outcome::granted);
  Request last = same_targets(Verb::release, acquire(1, kName));
  last.change.text = "the last words of a holder";
  line_.swallow_answer_to("request_put");
  const auto replies = behind_->apply({&last, 1}, soon());
  ASSERT_EQ(line_.swallowed(), 1);
  ASSERT_FALSE(replies) << describe(replies->at(0));
  EXPECT_TRUE(replies.error().in_doubt) << replies.error().message;
  Request get = same_targets(Verb::get, last);
  EXPECT_EQ(ask(*process(), get).info->note.text, last.change.text) << "it was not carried out";
}

TEST_F(EtcdStoreBehindALine, a_write_beside_a_renewal_does_not_take_it_back) {
  const Request renew = same_targets(Verb::renew, acquire(1, kName));
  Request noted = renew;
  noted.change.text = "half of it is done";
  for (const auto& write : {std::pair(acquire(2, kName, Mode::X, kQueueTtl), Outcome::queued),
                            std::pair(noted, Outcome::granted)}) {
    ASSERT_EQ(outcome(*behind_, acquire(1, kName)), Outcome::granted);
    time_.advance(1s);
    line_.hold("request_put");
    std::jthread beside([&] { EXPECT_EQ(outcome(*behind_, write.first), write.second); });
    ASSERT_TRUE(poll_until([&] { return !line_.held().empty(); }));
    time_.advance(kTtl - 2s);
    EXPECT_EQ(outcome(*behind_, renew), Outcome::granted);
    line_.let_go();
    beside.join();
    time_.advance(kTtl - 1s);
    EXPECT_EQ(outcome(*behind_, renew), Outcome::granted);
  }
}

// A member was frozen, and the process has gone on with another one.
TEST_F(EtcdStoreBehindALine, an_acquire_that_arrives_late_takes_nothing) {
  const auto a = opened("127.0.0.1:" + std::to_string(line_.port()) + "," + server_->endpoint());
  ASSERT_EQ(outcome(*a, acquire(1, kOther)), Outcome::granted);
  const Request request = acquire(2, kName);
  ASSERT_NO_FATAL_FAILURE(leave_unanswered(*a, request));
  ASSERT_EQ(outcome(*a, request), Outcome::granted);
  ASSERT_EQ(outcome(*a, same_targets(Verb::release, request)), Outcome::done);
  arrive_late();
  EXPECT_EQ(outcome(*process(), acquire(3, kName)), Outcome::granted);
}

// The next write cleans up after the unanswered one.
TEST_F(EtcdStoreBehindALine, renewals_and_looks_go_on_while_writes_get_no_answer) {
  const Request held = acquire(1, kName);
  ASSERT_EQ(outcome(*behind_, held), Outcome::granted);
  ASSERT_NO_FATAL_FAILURE(leave_unanswered(*behind_, acquire(2, kOther)));
  line_.hold("/v3/lease/grant");
  EXPECT_TRUE(poll_until([&] {
    EXPECT_EQ(outcome(*behind_, same_targets(Verb::renew, held)), Outcome::granted);
    EXPECT_EQ(outcome(*behind_, same_targets(Verb::get, held)), Outcome::done);
    return HasFailure() || !line_.held().empty();
  })) << "nobody clears up";
  EXPECT_EQ(outcome(*behind_, acquire(2, kOther)), Outcome::granted);
}

TEST_F(EtcdStoreBehindALine, renewals_alone_make_an_unanswered_write_void) {
  const Request held = acquire(1, kName);
  ASSERT_EQ(outcome(*behind_, held), Outcome::granted);
  ASSERT_NO_FATAL_FAILURE(leave_unanswered(*behind_, acquire(2, kOther)));
  const std::size_t before = keys_left();
  EXPECT_TRUE(poll_until([&] {
    EXPECT_EQ(outcome(*behind_, same_targets(Verb::renew, held)), Outcome::granted);
    return keys_left() > before;
  }));
  arrive_late();
  EXPECT_EQ(outcome(*process(), acquire(3, kOther)), Outcome::granted);
}

TEST_F(EtcdStoreBehindALine, one_name_that_is_changed_costs_few_writes_more_to_remove_ended_marks) {
  const auto name = [](std::uint64_t i) { return "DEFAULT:many:" + std::to_string(i); };
  constexpr std::uint64_t kNames = 64;
  for (std::uint64_t i = 0; i < kNames; ++i) {
    ASSERT_EQ(outcome(*behind_, acquire(100 + i, name(i))), Outcome::granted);
  }
  ASSERT_EQ(keys_left(), 2 * kNames);
  time_.advance(kTtl + 1s);
  line_.hold("request_delete_range");
  std::jthread remover(
      [this] { EXPECT_EQ(outcome(*behind_, acquire(1, kOther)), Outcome::granted); });
  ASSERT_TRUE(poll_until([&] { return !line_.held().empty(); }));
  ASSERT_EQ(outcome(*process(), acquire(2, name(7), Mode::X, kQueueTtl)), Outcome::queued);
  const std::size_t before = revision();
  line_.let_go();
  remover.join();
  EXPECT_LE(keys_left(), kNames + 4) << "beside the documents: what belongs to both who live";
  EXPECT_LT(revision() - before, 10U);
}

// Else a process of which somebody always ends would never come to what it was asked for.
TEST_F(EtcdStore, whoever_ends_while_ended_marks_are_removed_is_left_to_the_next_request) {
  ManualTime time;
  std::atomic<bool> passes = false;
  const auto now = [&] {
    if (passes) time.advance(10s);
    return time.now();
  };
  const auto a =
      store::open_etcd_store(
          {.url = url_, .now = now, .least_lease = std::chrono::minutes(10), .revoke_at_end = true},
          soon())
          .value();
  constexpr std::uint64_t kNames = 8;
  for (std::uint64_t i = 1; i <= kNames; ++i) {
    Request request = acquire(i, "DEFAULT:many:" + std::to_string(i));
    request.ttl = i * 10s - 5s;
    ASSERT_EQ(outcome(*a, request), Outcome::granted);
  }
  passes = true;
  EXPECT_EQ(outcome(*a, same_targets(Verb::get, acquire(99, kOther))), Outcome::done);
  EXPECT_LT(keys_left(), 2 * kNames) << "some have ended";
  EXPECT_GT(keys_left(), kNames + 1);
}

TEST_F(EtcdStore, two_processes_that_fight_for_a_set_never_both_hold_it) {
  const auto a = process();
  const auto b = process();
  std::atomic<int> inside = 0;
  std::atomic<int> held = 0;
  std::atomic<bool> overlap = false;
  const auto fight = [&](LockStore& store, std::uint64_t base) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      Request set = acquire(base + i, {{kName, Mode::X}, {kOther, Mode::X}});
      if (base > 5000) std::swap(set.targets[0], set.targets[1]);
      if (outcome(store, set) != Outcome::granted) continue;
      if (++inside > 1) overlap = true;
      ++held;
      --inside;
      outcome(store, same_targets(Verb::release, set));
    }
  };
  std::jthread first([&] { fight(*a, 1000); });
  std::jthread second([&] { fight(*b, 9000); });
  first.join();
  second.join();
  EXPECT_FALSE(overlap);
  EXPECT_GT(held, 0);
  EXPECT_EQ(keys_left(), 0U);
}

TEST(EtcdLeases, a_process_has_one_for_each_ttl_however_many_locks_it_holds) {
  const EtcdServer server;
  const auto leases = [&] {
    const std::string answer = server.post(0, "/v3/lease/leases", "{}");
    std::size_t count = 0;
    for (auto at = answer.find(R"("ID":)"); at != std::string::npos;
         at = answer.find(R"("ID":)", at + 1)) {
      ++count;
    }
    return count;
  };
  std::uint64_t number = 0;
  const auto take = [&](LockStore& store, Millis ttl) {
    ++number;
    Request request = acquire(number, "DEFAULT:job:" + std::to_string(number));
    request.ttl = ttl;
    for (const Verb verb : {Verb::acquire, Verb::renew}) {
      request.verb = verb;
      const auto replies = store.apply({&request, 1}, soon());
      ASSERT_TRUE(replies) << replies.error().message;
      EXPECT_EQ(replies->at(0).outcome, Outcome::granted) << describe(replies->at(0));
    }
  };
  const auto one = open_etcd_store(server.url(), soon()).value();
  for (int i = 0; i < 5; ++i) take(*one, 60s);
  EXPECT_EQ(leases(), 1U);
  take(*one, 120s);
  EXPECT_EQ(leases(), 2U);
  const auto another = open_etcd_store(server.url(), soon()).value();
  for (int i = 0; i < 5; ++i) take(*another, 60s);
  EXPECT_EQ(leases(), 3U);
}

TEST_F(EtcdStore, the_largest_set_fits_into_one_transaction) {
  const auto a = process();
  std::vector<Target> targets;
  for (std::size_t i = 0; i < a->capabilities().max_set; ++i) {
    targets.push_back({"DEFAULT:many:" + std::to_string(i), Mode::X});
  }
  const Request set = acquire(1, targets);
  ASSERT_EQ(outcome(*a, set), Outcome::granted);
  EXPECT_EQ(outcome(*process(), acquire(2, targets.back().key)), Outcome::busy);
  EXPECT_EQ(outcome(*a, same_targets(Verb::renew, set)), Outcome::granted);
  EXPECT_EQ(outcome(*a, same_targets(Verb::release, set)), Outcome::done);
  Request longer = acquire(3, targets);
  longer.at_least_for = 1s;
  const Reply refused = ask(*a, longer);
  EXPECT_EQ(refused.outcome, Outcome::unsupported) << "three operations a name are too many";
  EXPECT_FALSE(refused.message.empty());
}

TEST_F(EtcdStore, a_document_that_is_damaged_denies_its_name_only) {
  const auto a = process();
  const std::string key = "p" + std::to_string(prefixes_) + "/n/" + kName;
  tell("/v3/kv/put", R"({"key":")" + base64(key) + R"(","value":")" + base64("{x") + R"("})");
  const Reply denied = ask(*a, acquire(1, kName));
  EXPECT_EQ(denied.outcome, Outcome::denied);
  EXPECT_NE(denied.message.find("damaged"), std::string::npos) << denied.message;
  EXPECT_EQ(outcome(*a, acquire(2, kOther)), Outcome::granted);
}

// A page of these is more than a client takes in one answer.
TEST_F(EtcdStore, find_gets_through_names_that_are_large) {
  const std::string value = base64(std::string(32'000, 'x'));
  for (int i = 0; i < 600;) {
    std::string puts;
    for (const int end = i + 40; i < end; ++i) {
      const std::string key =
          "p" + std::to_string(prefixes_) + "/n/DEFAULT:large:" + std::to_string(i);
      puts += (puts.empty() ? "" : ",") + (R"({"request_put":{"key":")" + base64(key)) +
              R"(","value":")" + value + R"("}})";
    }
    tell("/v3/kv/txn", R"({"success":[)" + puts + "]}");
  }
  ASSERT_EQ(keys_left(), 600U);
  const auto a = open_etcd_store(url_ + "?apply_timeout=60s", soon()).value();
  ASSERT_EQ(outcome(*a, acquire(1, "DEFAULT:large:z")), Outcome::granted);
  const auto page = a->find({.subject = "large"}, soon());
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->items.size(), 601U);
  EXPECT_EQ(std::ranges::count_if(page->items, [](const LockInfo& i) { return i.damage.empty(); }),
            1)
      << "the others are no documents";
}

TEST_F(EtcdStore, find_sees_the_locks_of_all_processes) {
  const auto a = process();
  const auto b = process();
  for (std::uint64_t i = 1; i <= 30; ++i) {
    ask(i % 2 == 0 ? *a : *b, acquire(i, "DEFAULT:many:" + std::to_string(i)));
  }
  ASSERT_EQ(outcome(*a, acquire(99, "DEFAULT:many:1", Mode::X, kQueueTtl)), Outcome::queued);
  const auto page = process()->find({.subject = "many"}, soon());
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->items.size(), 30U);
  EXPECT_EQ(page->items.at(0).waiting, 1U);
}

}  // namespace
}  // namespace baton::test
