// What only a store with a server has to survive.

#include "fault.h"

namespace baton::test {
namespace {

TEST_F(Fault, a_server_that_restarts_under_load_breaks_no_promise) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(contender(2s, 10ms, 0));
  const auto writes = [&] { return count(&Verdict::writes); };
  for (const auto mode : {PostgresServer::StopMode::fast, PostgresServer::StopMode::immediate,
                          PostgresServer::StopMode::immediate}) {
    const auto before = writes();
    ASSERT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms));
    server->restart(mode);
  }
  const auto before = writes();
  EXPECT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms))
      << "nobody went on after the last crash";
  for (auto& process : processes) {
    EXPECT_TRUE(process->running()) << process->err();
    process->kill(SIGKILL);
  }
  processes.clear();
  verdict();
}

}  // namespace
}  // namespace baton::test
