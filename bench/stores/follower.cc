// A replica that wants to lead, for the failover rows:
//
//   failover_follower URL TTL_MS
//
// Waits for the lock `leader` and writes "G <boot time ns>" when it has it, "L <boot time ns>" when
// it has lost it. Then it waits again, until it is killed.

#include <cstdio>
#include <string>
#include <thread>

#include "baton/locks.h"

namespace {

using namespace std::chrono_literals;

void say(const char* what) {
  std::printf("%s %lld\n", what,
              static_cast<long long>(baton::BootClock::now().time_since_epoch().count()));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto locks = baton::open(argv[1]);
  if (!locks) {
    std::fprintf(stderr, "%s\n", locks.error().message.c_str());
    return 1;
  }
  while (true) {
    auto lease = locks->acquire({.subject = "leader"},
                                {.ttl = baton::Millis(std::stol(argv[2])), .wait = 1h});
    if (!lease) {  // a server that is away comes back
      std::fprintf(stderr, "%s\n", lease.error().message.c_str());
      std::this_thread::sleep_for(20ms);
      continue;
    }
    say("G");
    while (!lease->lost().stop_requested()) std::this_thread::sleep_for(2ms);
    say("L");
  }
}
