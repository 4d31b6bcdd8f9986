#pragma once

// The documents of the demo, and the client that submits them over HTTP.

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace demo {

// What becomes of a document: good and flaky ones (which fail twice) are ENRICHED, invalid ones
// REJECTED, poison FAILED in the service that it is poison for.
enum class Kind { good, flaky, invalid, poison_for_validation, poison_for_enrichment };

[[nodiscard]] Kind kind_of(int number);
[[nodiscard]] std::string correlation_id_of(int number);  // demo-17

struct Submitted {
  int number = 0;
  Kind kind = Kind::good;
  std::string id;  // as the answer has it
};

// Submits the documents 1 to `count` at a steady rate, in a thread. What gets no answer is sent
// again, perhaps to another replica, with the same Idempotency-Key.
class Submitter {
 public:
  using Urls = std::function<std::vector<std::string>()>;  // of the replicas that there are now
  Submitter(int count, Urls urls);

  [[nodiscard]] int submitted() const { return submitted_; }
  [[nodiscard]] int repeated() const { return repeated_; }
  [[nodiscard]] bool ended() const { return ended_; }
  // Once it has ended.
  [[nodiscard]] const std::vector<Submitted>& documents() const { return documents_; }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }  // empty: all were taken

 private:
  void run(const std::stop_token& stop);
  bool submit(int number, const std::stop_token& stop);

  const int count_;
  const Urls urls_;
  std::vector<Submitted> documents_;
  std::string trouble_;
  std::atomic<int> submitted_ = 0;
  std::atomic<int> repeated_ = 0;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;
};

}  // namespace demo
