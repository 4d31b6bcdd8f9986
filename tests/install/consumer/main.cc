// What a user writes first.

#include <baton/locks.h>

#include <cstdio>
#include <string>

using namespace std::chrono_literals;

int main(int, char** argv) {
  auto locks = baton::open("sqlite:" + std::string(argv[1]));
  if (!locks) return std::puts(locks.error().message.c_str()), 1;
  auto lease =
      locks->acquire({.subject = "report", .resources = {"2026-11"}}, {.ttl = 30s, .wait = 5s});
  if (!lease) return std::puts(lease.error().message.c_str()), 1;
  std::printf("held with token %llu\n", static_cast<unsigned long long>(lease->token()));
  return 0;
}
