#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace baton::cli {

// Of `baton outbox`, `inbox` and `dlq`.
struct EventArguments {
  std::string database;
  std::vector<std::string> ids;
  std::string id;  // of show
  std::vector<std::string> statuses;
  std::string consumer;
  std::string type;
  std::string aggregate;
  std::string error;
  std::string older_than;
  std::size_t limit = 50;
  std::string after;  // a position
  bool all = false;
  bool dry_run = false;
  bool yes = false;
  bool watch = false;
  std::string keep = "3d";
  std::string rate;
  bool force = false;
  bool each = false;
};

}  // namespace baton::cli
