// What a cluster has to survive: members that die, its leader first of all.

#include "fault.h"

namespace baton::test {
namespace {

class FaultCluster : public Fault {
 protected:
  [[nodiscard]] std::size_t members() const override { return 3; }

  std::vector<std::unique_ptr<Process>> processes;

  void start_load() {
    for (int i = 0; i < 4; ++i) processes.push_back(contender(2s, 10ms, 0));
    ASSERT_TRUE(goes_on()) << "nobody began";
  }
  bool goes_on() {
    const auto before = count(&Verdict::writes);
    return poll_until([&] { return count(&Verdict::writes) > before + 10; }, 90s, 50ms);
  }
  void finish() {
    for (auto& process : processes) {
      EXPECT_TRUE(process->running()) << process->err();
      process->kill(SIGKILL);
    }
    processes.clear();
    verdict();
  }
};

TEST_F(FaultCluster, a_member_that_dies_under_load_breaks_no_promise) {
  start_load();
  for (std::size_t round = 0; round < 3; ++round) {
    const std::size_t victim = (etcd->leader() + 1) % 3;
    etcd->stop(victim);
    ASSERT_TRUE(goes_on()) << "nobody went on without member " << victim;
    etcd->start(victim);
    ASSERT_TRUE(goes_on());
  }
  finish();
}

TEST_F(FaultCluster, a_leader_that_dies_under_load_breaks_no_promise) {
  start_load();
  for (int round = 0; round < 3; ++round) {
    const std::size_t leader = etcd->leader();
    etcd->stop(leader);
    ASSERT_TRUE(goes_on()) << "nobody went on after the leader died";
    etcd->start(leader);
    ASSERT_TRUE(goes_on());
  }
  finish();
}

TEST_F(FaultCluster, a_paused_leader_is_replaced_and_breaks_no_promise) {
  start_load();
  const std::size_t leader = etcd->leader();
  etcd->process(leader).kill(SIGSTOP);
  ASSERT_TRUE(goes_on()) << "nobody went on without the paused leader";
  etcd->process(leader).kill(SIGCONT);
  ASSERT_TRUE(goes_on());
  finish();
}

TEST_F(FaultCluster, all_members_at_once_come_back_and_break_no_promise) {
  start_load();
  for (std::size_t i = 0; i < 3; ++i) etcd->stop(i);
  etcd->launch_all();
  ASSERT_TRUE(goes_on()) << "nobody went on after the restart";
  finish();
}

TEST_F(Fault, a_server_that_restarts_under_load_breaks_no_promise) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(contender(2s, 10ms, 0));
  const auto writes = [&] { return count(&Verdict::writes); };
  for (int round = 0; round < 3; ++round) {
    const auto before = writes();
    ASSERT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms));
    etcd->restart();
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
