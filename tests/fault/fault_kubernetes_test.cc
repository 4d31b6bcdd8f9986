// The API server goes away under load.

#include "fault.h"

namespace baton::test {
namespace {

TEST_F(Fault, an_api_server_that_restarts_under_load_breaks_no_promise) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(contender(3s, 10ms, 0));
  const auto writes = [&] { return count(&Verdict::writes); };
  for (const bool crash : {true, false}) {
    const auto before = writes();
    ASSERT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms));
    crash ? kube->crash() : kube->stop();
    kube->start();
  }
  const auto before = writes();
  EXPECT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms))
      << "nobody went on after the last restart";
  for (auto& process : processes) {
    EXPECT_TRUE(process->running()) << process->err();
    process->kill(SIGKILL);
  }
  processes.clear();
  verdict();
}

}  // namespace
}  // namespace baton::test
