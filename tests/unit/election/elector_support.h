#pragma once

// Replicas that stand for election on one memory store, in time that only the test moves.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "baton/elector.h"
#include "conformance/replicas.h"
#include "store/memory/memory_store.h"

namespace baton::test {

// Has no queue: an acquire that would wait is answered `unsupported`.
class NoQueue final : public LockStore {
 public:
  explicit NoQueue(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      if (request.queue_ttl > Millis(0)) {
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

inline ElectorOptions on(Clock& clock, ElectorOptions options) {
  options.clock = &clock;
  return options;
}

class Election : public Replicas {
 protected:
  Election() : Replicas(memory_store) {}

  static std::shared_ptr<LockStore> memory_store(std::shared_ptr<ManualTime> time) {
    return store::make_memory_store_at([time = std::move(time)] { return time->now(); });
  }

  // A replica that stands, whose work counts itself and ends when it is told to.
  struct Candidate {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
    ManualClock clock;  // of its elector alone
    Elector elector;
    std::mutex mutex;
    std::vector<Token> terms;
    std::string why;
    std::stop_token last_stop;
    std::atomic<int> working{0};
    std::jthread thread;

    Candidate(Replica through, std::shared_ptr<ManualTime> time, const std::string& election,
              ElectorOptions options)
        : line(std::move(through.line)),
          locks(std::move(through.locks)),
          clock(std::move(time)),
          elector(locks, election, on(clock, std::move(options))) {}
    ~Candidate() { leave(); }

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
    // Whether its elector looks at the time of now, and waits on.
    bool waits_on() {
      const auto before = clock.waits();
      return poll_until([&] { return clock.waits() >= before + 2; });
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

  std::unique_ptr<Candidate> candidate(const std::string& node, ElectorOptions options = {},
                                       const std::string& election = "outbox") {
    return std::make_unique<Candidate>(replica(node), time, election, std::move(options));
  }

  // Stands and returns when it leads, or waits in the queue behind `ahead` others.
  std::unique_ptr<Candidate> leading(const std::string& node, ElectorOptions options = {}) {
    auto made = candidate(node, std::move(options));
    made->stand();
    EXPECT_TRUE(poll_until([&] { return made->elector.is_leader(); }));
    EXPECT_TRUE(poll_until([&] { return made->working == 1; }));
    return made;
  }
  std::unique_ptr<Candidate> following(const std::string& node, std::size_t ahead,
                                       ElectorOptions options = {}) {
    auto made = candidate(node, std::move(options));
    made->stand();
    EXPECT_TRUE(poll_until([&] { return waiting() == ahead + 1; }));
    return made;
  }

  // Two on a store without one: the first leads, the second tries again and again.
  std::pair<std::unique_ptr<Candidate>, std::unique_ptr<Candidate>> without_a_queue(
      const ElectorOptions& options) {
    store = std::make_shared<NoQueue>(store);
    auto first = leading("a", options);
    auto second = candidate("b", options);
    second->stand();
    return {std::move(first), std::move(second)};
  }

  LockInfo lock() {
    Request get;
    get.verb = Verb::get;
    get.targets = {{"DEFAULT:leader:outbox", Mode::X}};
    return store->apply({&get, 1}, BootClock::now() + 30s).value().front().info.value();
  }
  std::size_t waiting() { return lock().waiting; }
};

}  // namespace baton::test
