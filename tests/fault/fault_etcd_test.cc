// What a cluster has to survive: members that die, its leader first of all.

#include "fault.h"

namespace baton::test {
namespace {

class FaultCluster : public Fault {
 protected:
  [[nodiscard]] std::size_t members() const override { return 3; }
};

TEST_F(FaultCluster, a_member_that_dies_under_load_breaks_no_promise) {
  start_load();
  for (std::size_t round = 0; round < 3; ++round) {
    const std::size_t victim = (etcd->leader() + 1) % 3;
    outage([&] { etcd->stop(victim); });
    ASSERT_TRUE(goes_on()) << "nobody went on without member " << victim;
    etcd->start(victim);
    ASSERT_TRUE(goes_on());
  }
  finish_load();
}

TEST_F(FaultCluster, a_leader_that_dies_under_load_breaks_no_promise) {
  start_load();
  for (int round = 0; round < 3; ++round) {
    const std::size_t leader = etcd->leader();
    outage([&] {
      etcd->stop(leader);
      EXPECT_NE(etcd->leader(), leader);
    });
    ASSERT_TRUE(goes_on()) << "nobody went on after the leader died";
    etcd->start(leader);
    ASSERT_TRUE(goes_on());
  }
  finish_load();
}

TEST_F(FaultCluster, a_paused_leader_is_replaced_and_breaks_no_promise) {
  start_load();
  const std::size_t leader = etcd->leader();
  outage([&] {
    etcd->process(leader).kill(SIGSTOP);
    ASSERT_TRUE(goes_on()) << "nobody went on without the paused leader";
  });
  etcd->process(leader).kill(SIGCONT);
  ASSERT_TRUE(goes_on());
  finish_load();
}

TEST_F(FaultCluster, all_members_at_once_come_back_and_break_no_promise) {
  start_load();
  outage([&] {
    for (std::size_t i = 0; i < 3; ++i) etcd->stop(i);
    etcd->launch_all();
  });
  ASSERT_TRUE(goes_on()) << "nobody went on after the restart";
  finish_load();
}

TEST_F(Fault, a_server_that_restarts_under_load_breaks_no_promise) {
  survive(2s, 3, [&](int) { etcd->restart(); });
}

}  // namespace
}  // namespace baton::test
