// The parts of baton-gateway inside one process, where a test can stop them at any point.

#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "apps/gateway/orchestrator.h"
#include "apps/gateway/signal_gateway.h"
#include "apps/gateway/tally.h"
#include "baton/memory_store.h"
#ifdef BATON_OBJECTS_ON_POSTGRES
#include "support/postgres_database.h"
#endif
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::gateway {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSignal =
    R"({"alertName":"HighMemory","namespace":"shop",
        "resource":{"kind":"Deployment","name":"cart"},"severity":"critical",
        "labels":{"team":"checkout"}})";

TEST(Signal, is_read_with_its_fingerprint) {
  const auto signal = parse_signal(kSignal);
  ASSERT_TRUE(signal) << signal.error().message;
  EXPECT_EQ(signal->alert, "HighMemory");
  EXPECT_EQ(signal->target.text(), "shop/Deployment/cart");
  EXPECT_EQ(parse_target("shop/Deployment/cart"), signal->target);
  // printf HighMemory:shop:Deployment:cart | sha256sum
  EXPECT_EQ(signal->fingerprint,
            "12b6118dbb670f94f62d15b810fc384af2314d4336620a82d7e8c54e8e9bd9c3");
}

TEST(Signal, a_given_fingerprint_stands) {
  const auto signal = parse_signal(
      R"({"alertName":"A","resource":{"kind":"Node","name":"n"},"fingerprint":"my:own-1"})");
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->fingerprint, "my:own-1");
}

TEST(Signal, different_parts_have_different_fingerprints) {
  std::set<std::string> seen;
  for (const Target& target : {Target{"", "a", "b"}, Target{"a", "b", ""}, Target{"a:b", "", ""},
                               Target{"", "a:b", ""}, Target{"", "", "a:b"}}) {
    EXPECT_TRUE(seen.insert(fingerprint_of("x", target)).second) << target.text();
  }
}

TEST(Signal, limits_hold) {
  const auto with = [](const std::string& extra) {
    return parse_signal(R"({"alertName":"A","resource":{"kind":"Node","name":"n"},)" + extra + "}");
  };
  EXPECT_TRUE(with(R"("severity":"info")"));
  EXPECT_FALSE(with(R"("severity":"bad")"));
  EXPECT_FALSE(with(R"("severity":1)"));
  EXPECT_FALSE(with(R"("labels":["a"])"));
  EXPECT_FALSE(with(R"("labels":{"a":1})"));
  EXPECT_FALSE(with(R"("labels":{"":"a"})"));
  EXPECT_FALSE(with(R"("labels":{"a":")" + std::string(4097, 'x') + "\"}"));
  EXPECT_FALSE(with(R"("namespace":")" + std::string(64, 'x') + "\""));
  EXPECT_FALSE(with(R"("fingerprint":")" + std::string(129, 'x') + "\""));
  EXPECT_FALSE(with(R"("fingerprint":"a b")"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  EXPECT_FALSE(with("\"labels\":{" + many + "}"));
  EXPECT_FALSE(parse_signal(std::string(500'000, '[')));
  EXPECT_FALSE(
      parse_signal("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"));
}

TEST(Signal, every_signal_that_is_accepted_can_be_locked) {
  const Target longest{std::string(63, 'n'), std::string(63, 'k'), std::string(253, 'x')};
  EXPECT_TRUE(validate(target_lock(longest)));
  EXPECT_TRUE(validate(signal_lock(std::string(128, 'f'))));
  EXPECT_EQ(print_path(target_lock({"", "Node", "worker-1"})), "ro-lock/Node/worker-1");
  EXPECT_EQ(print_path(signal_lock("abc")), "gw-lock/abc");
}

// An HTTP client without HTTP.
struct Asked {
  std::promise<http::Response> promise;
  std::future<http::Response> answer = promise.get_future();
};

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Holds up the first caller until it may go on.
class Pause {
 public:
  Time at(Time time) {
    if (taken_.exchange(true)) return time;
    reached_.count_down();
    go_.wait();
    return time;
  }
  void wait_until_reached() { reached_.wait(); }
  void go() { go_.count_down(); }

 private:
  std::atomic<bool> taken_{false};
  std::latch reached_{1};
  std::latch go_{1};
};

class GatewayServices : public ::testing::Test {
 protected:
  GatewayServices() : objects_(open_objects(objects_url()).value()) {}
  ~GatewayServices() override { workers_->stop(); }

  static LockClient client() { return LockClient::make(make_memory_store()).value(); }

  // Of locks that the others do not share, where `name` has been held once already. So it is given
  // out with a higher token, as to the next holder when the first one has slept past its TTL.
  static LockClient later_client(const LockName& name) {
    LockClient locks = client();
    EXPECT_TRUE(locks.acquire(name)->release());
    return locks;
  }

  std::shared_ptr<SignalGateway> gateway(LockClient locks, std::function<Time()> now) {
    return std::make_shared<SignalGateway>(std::move(locks), objects_, workers_, metrics_,
                                           GatewayOptions{.now = std::move(now)});
  }

  static std::shared_ptr<Asked> ask(SignalGateway& gateway) {
    auto asked = std::make_shared<Asked>();
    gateway.handle({.body = kSignal}, http::Reply([asked](http::Response response) {
                     asked->promise.set_value(std::move(response));
                   }));
    return asked;
  }

  static int status(Asked& asked) {
    if (asked.answer.wait_for(test::patience) != std::future_status::ready) return 0;
    return asked.answer.get().status;
  }

  RemediationRequest make_request(const std::string& name, Token token = 1) {
    const Time now(std::chrono::milliseconds(++clock_));
    RemediationRequest request{.name = name,
                               .fingerprint = name,
                               .target = {"", "Node", "worker-1"},
                               .signal = "{}",
                               .created = now,
                               .last_seen = now};
    EXPECT_TRUE(objects_->create(request, guard(name, token)).value());
    return request;
  }

  static Guard guard(const std::string& key, Token token) {
    return {.tokens = {{key, Mode::X, token}}, .owner = "test"};
  }

  Orchestrator orchestrator(LockClient locks) {
    return orchestrator(std::move(locks),
                        [this] { return Time(std::chrono::milliseconds(clock_)); });
  }
  Orchestrator orchestrator(LockClient locks, std::function<Time()> now) {
    return {std::move(locks), objects_, *metrics_, {.keep = 10ms, .now = std::move(now)}};
  }

#ifdef BATON_OBJECTS_ON_POSTGRES
  std::string objects_url() { return database_.url(); }
  test::Database database_;
#else
  std::string objects_url() { return "sqlite:" + (dir_ / "objects.db").string(); }
#endif
  test::TempDir dir_{"gateway"};
  std::shared_ptr<observe::Metrics> metrics_ = std::make_shared<observe::Metrics>();
  std::shared_ptr<http::WorkerPool> workers_ = std::make_shared<http::WorkerPool>(4);
  std::shared_ptr<ObjectStore> objects_;
  std::int64_t clock_ = 1'000'000;
};

// What the lock is for: gateways that share none make one request each, because between the check
// and the creation lies time, and the names differ once that crosses a second.
TEST_F(GatewayServices, without_a_common_lock_two_gateways_make_two_requests) {
  std::latch both_have_checked(2);
  const auto at = [&](int second) {
    return [&both_have_checked, second] {
      both_have_checked.arrive_and_wait();
      return Time(std::chrono::seconds(second));
    };
  };
  const auto first = gateway(client(), at(1));
  const auto second = gateway(client(), at(2));
  const auto one = ask(*first);
  const auto two = ask(*second);
  EXPECT_EQ(status(*one), 201);
  EXPECT_EQ(status(*two), 201);
}

TEST_F(GatewayServices, a_notification_of_an_alertmanager_is_a_signal_for_each_firing_alert) {
  const auto one = gateway(client(), [] { return Time(1s); });
  const auto notify = [&](const std::string& alerts) {
    auto asked = std::make_shared<Asked>();
    one->handle_notification(
        {.body = R"({"version":"4","status":"firing","alerts":[)" + alerts + "]}"},
        http::Reply(
            [asked](http::Response response) { asked->promise.set_value(std::move(response)); }));
    EXPECT_EQ(asked->answer.wait_for(test::patience), std::future_status::ready);
    return asked->answer.get();
  };
  const std::string pod =
      R"({"status":"firing","labels":{"alertname":"Crash","namespace":"shop","pod":"cart-1"}})";
  const std::string node =
      R"({"status":"firing","labels":{"alertname":"Full","node":"w-1","severity":"page"},)"
      R"("annotations":{"summary":"/var is full"},"startsAt":"2026-11-19T08:00:00Z"})";
  const auto first = notify(pod + "," + node +
                            R"(,{"status":"resolved","labels":{"alertname":"Old","node":"w-1"}})" +
                            R"(,{"status":"firing","labels":{"alertname":"Nothing"}},7)");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(occurrences(first.body, "\"status\":\"created\""), 2U) << first.body;
  EXPECT_NE(first.body.find("no label says what is to be mended"), std::string::npos) << first.body;
  EXPECT_NE(first.body.find("an alert has no labels"), std::string::npos) << first.body;
  EXPECT_EQ(objects_->active_request(fingerprint_of("Crash", {"shop", "Pod", "cart-1"}))
                .value()
                .value()
                .target.text(),
            "shop/Pod/cart-1");
  const auto again = notify(pod);
  EXPECT_EQ(occurrences(again.body, "\"status\":\"duplicate\""), 1U) << again.body;
  EXPECT_EQ(notify("").status, 200);
  EXPECT_EQ(objects_->requests(std::nullopt, 10).value().size(), 2U);
}

TEST_F(GatewayServices, what_is_no_notification_of_an_alertmanager_is_refused) {
  const auto one = gateway(client(), [] { return Time(1s); });
  std::string many = R"({"labels":{}})";
  for (int i = 0; i < 256; ++i) many += R"(,{"labels":{}})";
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"alerts":[]})"),
        std::string(R"({"version":"5","alerts":[]})"), std::string(R"({"version":4,"alerts":{}})"),
        std::string(R"({"version":"4","alerts":[)") + many + "]}", std::string(5000, '[')}) {
    std::promise<int> answered;
    one->handle_notification({.body = body}, http::Reply([&](const http::Response& response) {
                               answered.set_value(response.status);
                             }));
    EXPECT_EQ(answered.get_future().get(), 400) << body.substr(0, 60);
  }
}

TEST_F(GatewayServices, with_it_the_second_waits_and_finds_a_duplicate) {
  LockClient locks = client();
  const LockName name = signal_lock(parse_signal(kSignal)->fingerprint);
  std::promise<void> go;
  const auto may_go = go.get_future().share();
  const auto first = gateway(locks, [may_go] {
    may_go.wait();
    return Time(1s);
  });
  const auto second = gateway(locks, [] { return Time(2s); });
  const auto one = ask(*first);
  ASSERT_TRUE(test::poll_until([&] { return !locks.get(name)->holders.empty(); }));
  const auto two = ask(*second);
  ASSERT_TRUE(test::poll_until([&] { return locks.get(name)->waiting == 1; }));
  go.set_value();
  EXPECT_EQ(status(*one), 201);
  EXPECT_EQ(status(*two), 202);
}

// The fence must have heard of the second before the second looks, not only when it writes: what
// the first writes in between would be seen by nobody.
TEST_F(GatewayServices, a_paused_gateway_cannot_write_once_the_next_holder_has_looked) {
  const auto fingerprint = parse_signal(kSignal)->fingerprint;
  Pause before_first;
  Pause before_second;
  const auto first = gateway(client(), [&] { return before_first.at(Time(1s)); });
  const auto second =
      gateway(later_client(signal_lock(fingerprint)), [&] { return before_second.at(Time(2s)); });
  const auto one = ask(*first);
  before_first.wait_until_reached();
  const auto two = ask(*second);
  before_second.wait_until_reached();
  before_first.go();
  EXPECT_EQ(status(*one), 503);
  before_second.go();
  EXPECT_EQ(status(*two), 201);
  EXPECT_EQ((*objects_->active_request(fingerprint))->created, Time(2s));
}

TEST_F(GatewayServices, stopping_answers_those_who_wait) {
  LockClient locks = client();
  const LockName name = signal_lock(parse_signal(kSignal)->fingerprint);
  auto held = locks.acquire(name);
  ASSERT_TRUE(held);
  const auto waiting = gateway(locks, [] { return Time(1s); });
  const auto asked = ask(*waiting);
  ASSERT_TRUE(test::poll_until([&] { return locks.get(name)->waiting == 1; }));
  waiting->stop();
  EXPECT_EQ(asked->answer.wait_for(0s), std::future_status::ready) << "and waits for that";
  EXPECT_EQ(status(*asked), 503);
}

TEST_F(GatewayServices, an_overtaken_holder_cannot_write) {
  RemediationRequest request = make_request("rr-1", 7);
  request.name = "rr-2";
  const auto refused = objects_->create(request, guard("rr-1", 6));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::fenced);
  EXPECT_FALSE(objects_->request("rr-2").value());
  const WorkflowExecution execution{.name = "we-1", .request = "rr-1", .target = request.target};
  EXPECT_EQ(objects_->create(execution, guard("rr-1", 6)).error().code, Code::fenced);
  EXPECT_EQ(objects_->set_running("rr-1", "we-1", guard("rr-1", 6)).error().code, Code::fenced);
}

TEST_F(GatewayServices, a_taken_name_is_not_written_over) {
  const RemediationRequest request = make_request("rr-1");
  EXPECT_FALSE(objects_->create(request, guard("rr-1", 2)).value());
}

TEST_F(GatewayServices, the_oldest_request_of_each_free_target_can_start) {
  using Verdict = Orchestrator::Verdict;
  const auto first = make_request("rr-1");
  const auto second = make_request("rr-2");
  auto orchestra = orchestrator(client());
  const auto startable = objects_->startable_requests(10);
  ASSERT_EQ(startable->size(), 1U);
  EXPECT_EQ(startable->front().name, "rr-1");
  EXPECT_EQ(orchestra.reconcile(first), Verdict::started);
  EXPECT_EQ(orchestra.reconcile(first), Verdict::concluded) << "old news";
  EXPECT_TRUE(objects_->startable_requests(10)->empty());
  EXPECT_EQ(orchestra.reconcile(second), Verdict::target_busy);

  ASSERT_TRUE(objects_->finish_execution("we-rr-1", Phase::failed, Time(1s)).value());
  EXPECT_TRUE(orchestra.pass());
  EXPECT_EQ((*objects_->request("rr-1"))->phase, Phase::failed);
  EXPECT_EQ((*objects_->request("rr-2"))->phase, Phase::running);
  EXPECT_EQ((*objects_->active_execution(second.target))->request, "rr-2");
}

TEST_F(GatewayServices, a_paused_orchestrator_cannot_start_once_the_next_holder_has_looked) {
  using Verdict = Orchestrator::Verdict;
  const auto one = make_request("rr-1");
  const auto two = make_request("rr-2");
  Pause before_first;
  Pause before_second;
  auto first = orchestrator(client(), [&] { return before_first.at(Time(1s)); });
  auto second = orchestrator(later_client(target_lock(two.target)),
                             [&] { return before_second.at(Time(2s)); });
  auto first_does = std::async(std::launch::async, [&] { return first.reconcile(one); });
  before_first.wait_until_reached();
  auto second_does = std::async(std::launch::async, [&] { return second.reconcile(two); });
  before_second.wait_until_reached();
  before_first.go();
  EXPECT_EQ(first_does.get(), Verdict::failed);
  before_second.go();
  EXPECT_EQ(second_does.get(), Verdict::started);
  const auto running = objects_->executions(Phase::running, 10);
  ASSERT_EQ(running->size(), 1U);
  EXPECT_EQ(running->front().request, "rr-2");
}

TEST_F(GatewayServices, a_locked_target_is_put_off) {
  LockClient locks = client();
  const auto request = make_request("rr-1");
  auto held = locks.acquire(target_lock(request.target));
  ASSERT_TRUE(held);
  auto orchestra = orchestrator(locks);
  EXPECT_EQ(orchestra.reconcile(request), Orchestrator::Verdict::lock_busy);
  EXPECT_TRUE(orchestra.pass()) << "busy is no trouble";
  ASSERT_TRUE(held->release());
  EXPECT_EQ(orchestra.reconcile(request), Orchestrator::Verdict::started);
}

TEST_F(GatewayServices, what_is_put_off_is_looked_at_again_after_100_ms) {
  EXPECT_EQ(OrchestratorOptions{}.requeue, 100ms);
  LockClient locks = client();
  const auto request = make_request("rr-1");
  auto held = locks.acquire(target_lock(request.target));
  ASSERT_TRUE(held);
  // A look asks what time it is at its beginning and at its end.
  std::mutex mutex;
  std::vector<std::chrono::steady_clock::time_point> asked;
  Orchestrator orchestra(locks, objects_, *metrics_, {.now = [&] {
                           const std::lock_guard lock(mutex);
                           asked.push_back(std::chrono::steady_clock::now());
                           return Time(1s);
                         }});
  std::jthread thread([&](const std::stop_token& stop) { orchestra.run(stop); });
  // The shortest pause so far: a machine that is busy makes them longer, and nothing shorter.
  const auto shortest = [&] {
    const std::lock_guard lock(mutex);
    std::chrono::nanoseconds least = 1h;
    for (std::size_t i = 2; i < asked.size(); i += 2) {
      least = std::min<std::chrono::nanoseconds>(least, asked[i] - asked[i - 1]);
    }
    return least;
  };
  EXPECT_TRUE(test::poll_until([&] { return shortest() < 200ms; }));
  EXPECT_GE(shortest(), 100ms);
  ASSERT_TRUE(held->release());
  EXPECT_TRUE(
      test::poll_until([&] { return (*objects_->request("rr-1"))->phase == Phase::running; }));
}

// As if an orchestrator had died between making the execution and noting it, before the workflow
// ended and after.
TEST_F(GatewayServices, an_execution_that_was_made_is_not_made_again) {
  for (const bool ended : {false, true}) {
    const std::string name = ended ? "rr-ended" : "rr-running";
    const auto request = make_request(name);
    const WorkflowExecution execution{
        .name = "we-" + name, .request = name, .target = request.target};
    ASSERT_TRUE(objects_->create(execution, guard("other", 1)).value());
    if (ended) {
      ASSERT_TRUE(objects_->finish_execution(execution.name, Phase::completed, Time(1s)).value());
    }
    auto orchestra = orchestrator(client());
    const auto startable = objects_->startable_requests(10);
    ASSERT_EQ(startable->size(), 1U) << name;
    EXPECT_EQ(orchestra.reconcile(startable->front()), Orchestrator::Verdict::adopted);
    if (!ended) {
      ASSERT_TRUE(objects_->finish_execution(execution.name, Phase::completed, Time(1s)).value());
    }
    EXPECT_TRUE(orchestra.pass());
    EXPECT_EQ((*objects_->request(name))->phase, Phase::completed);
  }
}

TEST_F(GatewayServices, what_has_ended_is_forgotten_in_time) {
  make_request("rr-active");
  auto orchestra = orchestrator(client());
  EXPECT_TRUE(orchestra.pass());
  const Time now{std::chrono::milliseconds(clock_)};
  ASSERT_TRUE(objects_->finish_execution("we-rr-active", Phase::completed, now).value());
  EXPECT_TRUE(orchestra.pass());
  ASSERT_TRUE(objects_->request("rr-active").value());
  EXPECT_TRUE(objects_->forget(now + 1ms).value() > 0);
  EXPECT_FALSE(objects_->request("rr-active").value());
  EXPECT_FALSE(objects_->execution("we-rr-active").value());
}

TEST(Tally, what_comes_during_a_write_is_written_together_and_everybody_gets_a_number) {
  Tally tally;
  std::latch first_writes(1);
  std::latch go(1);
  std::mutex mutex;
  std::vector<std::int64_t> writes;
  std::int64_t stored = 0;
  const auto write = [&](std::int64_t more) -> Tally::Count {
    bool first = false;
    {
      const std::lock_guard lock(mutex);
      writes.push_back(more);
      first = writes.size() == 1;
    }
    if (first) {
      first_writes.count_down();
      go.wait();
    }
    const std::lock_guard lock(mutex);
    return std::optional<std::int64_t>(stored += more);
  };
  std::vector<std::future<std::int64_t>> counts;
  const auto add = [&] {
    counts.push_back(
        std::async(std::launch::async, [&] { return tally.add("name", write).value().value(); }));
  };
  add();
  first_writes.wait();
  for (int i = 0; i < 5; ++i) add();
  ASSERT_TRUE(test::poll_until([&] { return tally.gathered("name") == 5; }));
  go.count_down();
  std::set<std::int64_t> numbers;
  for (auto& count : counts) numbers.insert(count.get());
  EXPECT_EQ(numbers, (std::set<std::int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(writes, (std::vector<std::int64_t>{1, 5}));
}

TEST(Tally, a_write_that_fails_fails_for_all_that_it_was_for) {
  Tally tally;
  const auto fails = [](std::int64_t) -> Tally::Count { return Error{.code = Code::unavailable}; };
  EXPECT_EQ(tally.add("name", fails).error().code, Code::unavailable);
  const auto gone = [](std::int64_t) -> Tally::Count { return std::optional<std::int64_t>(); };
  EXPECT_FALSE(tally.add("name", gone).value());
}

TEST(Objects, a_url_that_cannot_be_used_is_explained) {
  EXPECT_FALSE(open_objects("k8s://No/Namespace"));
  EXPECT_EQ(open_objects("sqlite:").error().code, Code::bad_url);
  EXPECT_EQ(open_objects("what").error().code, Code::bad_url);
  EXPECT_FALSE(open_objects("sqlite:/nowhere/at/all.db"));
}

}  // namespace
}  // namespace baton::gateway
