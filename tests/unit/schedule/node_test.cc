// The registry of nodes, on a store whose time the test moves.

#include "baton/node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>

#include "conformance/manual_clock.h"
#include "store/memory/memory_store.h"
#include "support/flaky_store.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

// A store in which every release gets stuck until it may go on.
class SlowReleases final : public LockStore {
 public:
  explicit SlowReleases(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}

  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    if (std::any_of(batch.begin(), batch.end(),
                    [](const Request& request) { return request.verb == Verb::release; })) {
      stuck_ = true;
      go_.wait();
    }
    return inner_->apply(batch, deadline);
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

  [[nodiscard]] bool stuck() const { return stuck_; }
  void go() { go_.count_down(); }

 private:
  std::shared_ptr<LockStore> inner_;
  std::atomic<bool> stuck_{false};
  std::latch go_{1};
};

class NodeTest : public ::testing::Test {
 protected:
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  std::shared_ptr<LockStore> store = store::make_memory_store_at([this] { return time->now(); });
  std::shared_ptr<FlakyStore> line = std::make_shared<FlakyStore>(store);
  LockClient good = LockClient::make(store, {.owner = "good", .clock = &clock}).value();

  NodeOptions options(const std::string& id) {
    return {.id = id, .role = "warehouse", .ttl = 3s, .clock = &clock};
  }
};

TEST_F(NodeTest, a_node_shows_who_it_is_and_is_gone_when_it_leaves) {
  auto a = Node::join(good, options("a")).value();
  auto b = Node::join(good, options("b")).value();
  auto nodes = live_nodes(good).value();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].id, "a");
  EXPECT_EQ(nodes[0].role, "warehouse");
  EXPECT_EQ(nodes[0].pid, getpid());
  EXPECT_FALSE(nodes[0].host.empty());
  EXPECT_FALSE(nodes[0].version.empty());
  EXPECT_TRUE(nodes[0].alive);
  EXPECT_EQ(std::chrono::floor<Millis>(nodes[0].started), std::chrono::floor<Millis>(a.started()));
  EXPECT_EQ(nodes[0].token, a.token());
  EXPECT_EQ(good.get({.subject = "node", .predicate = "alive", .resources = {"a"}})
                .value()
                .holders.at(0)
                .predicate,
            "alive");
  a.leave();
  EXPECT_FALSE(a.alive());
  nodes = known_nodes(good).value();
  ASSERT_EQ(nodes.size(), 1U) << "who leaves is not missed";
  EXPECT_EQ(nodes[0].id, "b");
}

TEST_F(NodeTest, a_node_that_stops_renewing_is_gone_within_its_ttl) {
  LockClient bad = LockClient::make(line, {.owner = "bad", .clock = &clock}).value();
  std::atomic<int> losses = 0;
  NodeOptions given = options("a");
  given.on_change = [&](bool alive, const std::string&) { losses += alive ? 0 : 1; };
  auto a = Node::join(bad, given).value();
  EXPECT_EQ(live_nodes(good).value().size(), 1U);
  line->set(FlakyStore::Line::refuses);
  time->advance(3s);
  EXPECT_EQ(live_nodes(good).value().size(), 0U);
  const auto known = known_nodes(good).value();
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].id, "a");
  EXPECT_EQ(known[0].role, "warehouse");
  EXPECT_FALSE(known[0].alive);
  EXPECT_TRUE(poll_until([&] { return losses == 1 && !a.alive(); }));

  line->set(FlakyStore::Line::good);
  EXPECT_TRUE(poll_until([&] {
    time->advance(5ms);
    return a.alive();
  })) << "it comes back by itself";
  EXPECT_EQ(live_nodes(good).value().size(), 1U);
}

TEST_F(NodeTest, a_node_that_is_back_says_so_while_it_still_lets_go_of_what_it_lost) {
  const auto slow = std::make_shared<SlowReleases>(line);
  auto a = Node::join(LockClient::make(slow, {.clock = &clock}).value(), options("a")).value();
  line->set(FlakyStore::Line::refuses);
  time->advance(3s);
  EXPECT_TRUE(poll_until([&] { return !a.alive(); }));
  line->set(FlakyStore::Line::good);
  EXPECT_TRUE(poll_until([&] {
    time->advance(5ms);
    return slow->stuck();
  }));
  auto alive = std::async(std::launch::async, [&] { return a.alive(); });
  EXPECT_EQ(alive.wait_for(patience), std::future_status::ready);
  slow->go();
  EXPECT_TRUE(alive.get());
}

TEST_F(NodeTest, a_second_process_of_one_id_stays_out_until_the_first_is_gone) {
  auto first = Node::join(good, options("a")).value();
  auto second = Node::join(good, options("a")).value();
  EXPECT_TRUE(first.alive());
  EXPECT_FALSE(second.alive());
  first.leave();
  EXPECT_TRUE(poll_until([&] {
    time->advance(5ms);
    return second.alive();
  }));
}

TEST_F(NodeTest, what_cannot_succeed_later_is_an_error_at_once) {
  EXPECT_EQ(Node::join(good, options(std::string(300, 'x'))).error().code, Code::bad_name);
  NodeOptions short_lived = options("a");
  short_lived.ttl = 1ms;
  EXPECT_EQ(Node::join(good, short_lived).error().code, Code::bad_request);
}

TEST_F(NodeTest, a_node_that_went_without_leaving_is_forgotten_after_a_day) {
  auto wall = std::make_shared<std::atomic<std::int64_t>>(1'800'000'000'000);
  const auto wall_clock = [wall] { return WallTime(Millis(wall->load())); };
  {
    LockClient bad = LockClient::make(line, {.owner = "bad", .clock = &clock}).value();
    NodeOptions given = options("crashed");
    given.wall_clock = wall_clock;
    auto crashed = Node::join(bad, given).value();
    line->set(FlakyStore::Line::refuses);  // so that it cannot say goodbye
  }
  time->advance(3s);
  const auto join = [&](const std::string& id) {
    NodeOptions given = options(id);
    given.wall_clock = wall_clock;
    return Node::join(good, given).value();
  };
  auto next = join("next");
  *wall += 1000LL * 3600 * 23;
  auto soon = join("soon");
  EXPECT_EQ(known_nodes(good).value().size(), 3U);
  *wall += 1000LL * 3600 * 2;
  auto later = join("later");
  EXPECT_TRUE(poll_until([&] { return known_nodes(good).value().size() == 3U; }));
  const auto left = known_nodes(good).value();
  for (const auto& node : left) EXPECT_TRUE(node.alive) << node.id;
}

}  // namespace
}  // namespace baton::test
