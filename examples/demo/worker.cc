#include "worker.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "baton/locks.h"
#include "ledger.h"

namespace demo {

using namespace std::chrono_literals;

int work(const std::string& directory, const std::string& name) {
  auto locks = baton::open("sqlite:" + directory + "/locks.db", {.owner = name});
  if (!locks) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), locks.error().message.c_str());
    return 1;
  }
  Ledger ledger(directory + "/ledger.db");
  while (ledger.done().size() < kUnits) {
    for (int unit = 1; unit <= kUnits; ++unit) {
      if (ledger.is_done(unit)) continue;
      auto lease =
          locks->try_acquire({.subject = "unit", .resources = {std::to_string(unit)}}, {.ttl = 2s});
      if (!lease) continue;
      // Looked at again under the lock: it may have been done since.
      if (ledger.is_done(unit)) continue;
      std::this_thread::sleep_for(500ms);  // the work
      ledger.write(unit, name, *lease);
      break;  // from the start again: an earlier unit may have lost its worker
    }
    std::this_thread::sleep_for(10ms);
  }
  return 0;
}

}  // namespace demo
