#pragma once

// Documents of all kinds that are submitted to a platform while its processes are killed and
// stopped, and what must have become of them.
//
//   FaultRun run(platform, seed, 300);
//   run.submit(150);            // in the background; they are taken however often it takes
//   run.wait_for(75);
//   run.kill_one();
//   …
//   EXPECT_EQ(run.problems(), "");

#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "platform.h"

namespace baton::test {

// A document, and what it leaves behind when all is well.
struct Submitted {
  nlohmann::json document;
  std::string status;  // in the end
  std::string stage;   // whose dead letter it is; empty: none
  int events = 0;
  int notifications = 0;
};

// Of each hundred: 70 valid, 10 rejected, 10 that fail twice, 10 that always fail in one of the two
// stages; and `crashing` that kill every process which handles them, in all.
[[nodiscard]] std::vector<Submitted> documents_of_all_kinds(std::mt19937_64& random, int count,
                                                            int crashing);

class FaultRun {
 public:
  // Three replicas of each service, and a time for handlers that makes up for a killed one soon.
  static PlatformOptions options(const std::string& postgres = "",
                                 const std::string& rabbitmq = "");

  FaultRun(Platform& platform, std::uint64_t seed, int documents, int crashing);
  ~FaultRun();

  // Allows so many more to be submitted.
  void submit(int more);
  // Until so many in all have been taken; throws if they are not.
  void wait_for(int taken);
  [[nodiscard]] int count() const { return static_cast<int>(documents_.size()); }
  // How many of them are in no final state yet, as far as ingestion can tell now.
  [[nodiscard]] int unfinished() const;

  // A replica, of any service, that the seed says. Empty if it does not run at this moment.
  std::string kill_one();
  // SIGSTOP until the locks and leases of the process are somebody else's; then it goes on, or is
  // killed, as the seed says.
  std::string stop_one_past_its_ttl();

  // Waits until everything is final, and says what is wrong; empty if nothing is.
  [[nodiscard]] std::string problems(const std::string& wait);
  [[nodiscard]] int kills() const { return kills_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }

 private:
  void submit_all(const std::stop_token& stop);
  bool submit_one(std::size_t index, int turn);
  std::string choose();

  Platform& platform_;
  std::mt19937_64 random_;
  const std::vector<Submitted> documents_;
  std::vector<std::string> keys_;
  int kills_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable_any signal_;
  std::size_t allowed_ = 0;
  std::size_t next_ = 0;
  std::map<std::string, std::size_t> taken_;  // index by id
  std::string refused_;                       // an answer that no fault excuses
  std::vector<std::jthread> submitting_;
};

}  // namespace baton::test
