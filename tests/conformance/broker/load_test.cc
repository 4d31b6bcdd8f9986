#include <algorithm>
#include <sstream>

#include "harness.h"

namespace baton::test {
namespace {

class Load : public BrokerTest {};

// Nobody dies here, so nothing comes twice.
TEST_F(Load, two_publishers_and_three_consumers_lose_and_duplicate_nothing) {
  constexpr int kEach = 3'000;
  declare(simple({"q"}));
  std::vector<std::unique_ptr<Process>> consumers;
  for (int i = 0; i < 3; ++i) {
    consumers.push_back(std::make_unique<Process>(client_process({"consume", name("q")})));
  }
  for (auto& consumer : consumers) ASSERT_TRUE(consumer->wait_for_out("ready\n"));
  std::vector<std::unique_ptr<Process>> publishers;
  for (const char* key : {"a", "b"}) {
    publishers.push_back(std::make_unique<Process>(
        client_process({"publish", name("events"), key, std::to_string(kEach)})));
  }
  for (auto& publisher : publishers) {
    const auto status = publisher->wait(2 * patience);
    ASSERT_TRUE(status && status->success()) << publisher->err();
  }
  const auto lines = [&] {
    std::size_t all = 0;
    for (const auto& consumer : consumers) {
      const std::string out = consumer->out();
      all += static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n')) - 1;
    }
    return all;
  };
  EXPECT_TRUE(
      poll_until([&] { return lines() >= 2 * kEach; }, 2 * patience, std::chrono::milliseconds(20)))
      << lines();
  std::multiset<std::string> got;
  for (auto& consumer : consumers) {
    consumer->close_stdin();
    const auto status = consumer->wait();
    EXPECT_TRUE(status && status->success()) << consumer->err();
    std::istringstream out(consumer->out());
    for (std::string line; std::getline(out, line);) {
      if (line.starts_with("got ")) got.insert(line.substr(4));
    }
  }
  EXPECT_EQ(got.size(), std::size_t{2 * kEach});
  EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), std::size_t{2 * kEach});
}

}  // namespace
}  // namespace baton::test
