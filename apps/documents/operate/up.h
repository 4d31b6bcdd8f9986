#pragma once

#include <map>
#include <string>

#include "apps/documents/operate/places.h"

namespace baton::documents {

struct UpOptions {
  std::map<std::string, int> replicas;  // by service; one if it is not named
  int port = 8080;  // of the first replica of the first service, and so on; 0: any
  bool allow_simulation = false;
  std::string config;        // for the services
  std::string lock_ttl;      // empty: theirs
  std::string retry_delays;  // empty: theirs
};

// documents up: runs every service as a process of its own, starts those again that die, and shows
// how they are, until SIGINT or SIGTERM. They die with us.
[[nodiscard]] Result<int> up(const Places& places, const UpOptions& options);

}  // namespace baton::documents
