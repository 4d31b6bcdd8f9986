#pragma once

// Replicas that stand for election on one memory store, in time that only the test moves.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "baton/elector.h"
#include "conformance/manual_clock.h"
#include "store/memory/memory_store.h"
#include "support/flaky_store.h"
#include "support/wait.h"

namespace baton::test {

using namespace std::chrono_literals;

// Has no queue: whoever would wait is told that it cannot be done.
class NoQueue final : public LockStore {
 public:
  explicit NoQueue(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      if (request.ticket > Millis(0)) {
        Reply reply;
        reply.outcome = Outcome::unsupported;
        reply.message = "this store has no queue";
        replies.push_back(reply);
        continue;
      }
      auto one = inner_->apply({&request, 1}, deadline);
      if (!one) return one.error();
      replies.push_back(std::move(one->front()));
    }
    return replies;
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  std::shared_ptr<LockStore> inner_;
};

inline void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any signal;
  std::unique_lock lock(mutex);
  signal.wait(lock, stop, [] { return false; });
}

class Election : public ::testing::Test {
 protected:
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  std::shared_ptr<LockStore> store = store::make_memory_store_at([t = time] { return t->now(); });

  // A replica whose work counts itself and ends when it is told to.
  struct Replica {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
    Elector elector;
    std::mutex mutex;
    std::vector<Token> terms;
    std::string why;
    std::stop_token last_stop;
    std::atomic<int> working{0};
    std::jthread thread;

    Replica(std::shared_ptr<FlakyStore> through, LockClient client, const std::string& election,
            ElectorOptions options)
        : line(std::move(through)),
          locks(std::move(client)),
          elector(locks, election, std::move(options)) {}
    ~Replica() { leave(); }

    // With other work than its own.
    void run(Elector::Work work) {
      thread = std::jthread([this, work = std::move(work)] {
        const auto ended = elector.run(work);
        EXPECT_TRUE(ended) << ended.error().message;
      });
    }
    void stand() {
      run([this](Leadership& term, const std::stop_token& stop) {
        began(term, stop);
        wait_for(stop);
        over(term);
      });
    }
    void began(Leadership& term, const std::stop_token& stop) {
      const std::lock_guard lock(mutex);
      terms.push_back(term.term());
      last_stop = stop;
      ++working;
    }
    void over(Leadership& term) {
      const std::lock_guard lock(mutex);
      why = term.why_ending();
      --working;
    }
    void leave() {
      elector.stop();
      if (thread.joinable()) thread.join();
    }
    std::size_t times_led() {
      const std::lock_guard lock(mutex);
      return terms.size();
    }
    Token last_term() {
      const std::lock_guard lock(mutex);
      return terms.empty() ? 0 : terms.back();
    }
    bool told_to_stop() {
      const std::lock_guard lock(mutex);
      return last_stop.stop_requested();
    }
    std::string why_ended() {
      const std::lock_guard lock(mutex);
      return why;
    }
  };

  std::unique_ptr<Replica> replica(const std::string& node, ElectorOptions options = {},
                                   const std::string& election = "outbox") {
    auto line = std::make_shared<FlakyStore>(store);
    auto locks = LockClient::make(line, {.owner = node, .clock = &clock}).value();
    options.clock = &clock;
    return std::make_unique<Replica>(line, std::move(locks), election, std::move(options));
  }

  // Stands and returns when it leads, or waits in the queue behind `ahead` others.
  std::unique_ptr<Replica> leading(const std::string& node, ElectorOptions options = {}) {
    auto made = replica(node, std::move(options));
    made->stand();
    EXPECT_TRUE(poll_until([&] { return made->elector.is_leader(); }));
    EXPECT_TRUE(poll_until([&] { return made->working == 1; }));
    return made;
  }
  std::unique_ptr<Replica> following(const std::string& node, std::size_t ahead,
                                     ElectorOptions options = {}) {
    auto made = replica(node, std::move(options));
    made->stand();
    EXPECT_TRUE(poll_until([&] { return waiting() == ahead + 1; }));
    return made;
  }

  LockInfo lock() {
    Request get;
    get.verb = Verb::get;
    get.asks = {{"DEFAULT:leader:outbox", Mode::X}};
    return store->apply({&get, 1}, BootClock::now() + 30s).value().front().info.value();
  }
  std::size_t waiting() { return lock().waiting; }

  // Lets time pass until it is so. Only liveness is tested with it, never a point in time.
  template <typename Condition>
  bool eventually(Condition condition, Millis step = 5ms) {
    return poll_until(
        [&] {
          if (condition()) return true;
          time->advance(step);
          return false;
        },
        60s, 1ms);
  }
};

}  // namespace baton::test
