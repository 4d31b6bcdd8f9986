#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace baton::test {

// A bad network between a client and a server on 127.0.0.1: a TCP proxy that delays, holds back or
// resets what goes through it. Thread-safe.
class FaultProxy {
 public:
  explicit FaultProxy(int target_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] int port() const { return port_; }

  // As if the cable were out: nothing arrives in either direction, not even that somebody has
  // closed its end, and nobody new gets through. What was sent arrives after heal(), as TCP does.
  void cut();
  void heal();

  // The connections that there are carry nothing more, in either direction; new ones do.
  void silence();

  // From now on everything arrives so much later.
  void delay(std::chrono::milliseconds by);

  // Both ends of every connection are told that it has gone.
  void reset();

  // The next request with this text in it is held back, and all that follows on its connection.
  // What it was, for a test that sends it later itself; empty until it came.
  void hold(std::string text);
  [[nodiscard]] std::string held() const;
  void let_go();

  // The next request with this text in it (empty: whatever it says) is passed on, but its
  // connection ends instead of bringing the answer. How many have ended so.
  void swallow_answer_to(std::string text);
  [[nodiscard]] int swallowed() const { return swallowed_; }

  // How many connections go through it.
  [[nodiscard]] int connections() const { return connections_; }

 private:
  struct Link;
  void work(const std::stop_token& stop);
  void accept_one();
  void drop_all();
  int step();  // moves what can be moved; how many milliseconds until there may be more
  void signal() const;
  bool is_to_be_held(const std::string& bytes);
  void swallow(Link& link);

  const int target_port_;
  int listener_ = -1;
  int event_ = -1;
  int port_ = 0;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> reset_ = false;
  std::atomic<bool> silence_ = false;
  std::atomic<bool> let_go_ = false;
  std::atomic<std::int64_t> delay_ms_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> swallowed_ = 0;
  mutable std::mutex mutex_;
  std::string hold_;
  std::string held_;
  std::optional<std::string> swallow_;
  std::list<std::unique_ptr<Link>> links_;
  std::jthread thread_;
};

}  // namespace baton::test
