// A replica that wants to lead, for the failover row:
//
//   failover_follower URL TTL_MS
//
// Waits for the lock `leader`, and once it has it writes "G <boot time ns> <token>" and leads until
// it is killed.

#include <unistd.h>

#include <cstdio>
#include <string>

#include "baton/locks.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  using namespace std::chrono_literals;
  auto locks = baton::open(argv[1]);
  if (!locks) {
    std::fprintf(stderr, "%s\n", locks.error().message.c_str());
    return 1;
  }
  auto lease =
      locks->acquire({.subject = "leader"}, {.ttl = baton::Millis(std::stol(argv[2])), .wait = 1h});
  const auto now = baton::BootClock::now().time_since_epoch().count();
  if (!lease) {
    std::fprintf(stderr, "%s\n", lease.error().message.c_str());
    return 1;
  }
  std::printf("G %lld %llu\n", static_cast<long long>(now),
              static_cast<unsigned long long>(lease->token()));
  std::fflush(stdout);
  while (true) pause();
}
