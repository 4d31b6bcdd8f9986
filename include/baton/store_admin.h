#pragma once

// What an operator does to a store, apart from locking: create its schema, look at it, mend it.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baton/store.h"

namespace baton {

struct StoreStatus {
  std::string kind;      // "postgres", "sqlite", "memory"
  std::string location;  // the URL without its password
  int schema_version = 0;
  int schema_expected = 0;                                   // what this binary wants
  std::vector<std::pair<std::string, std::string>> details;  // more lines for people, in order
};

class BATON_EXPORT StoreAdmin {
 public:
  virtual ~StoreAdmin() = default;

  // Works on a store without a schema too: schema_version is 0 then.
  virtual Result<StoreStatus> status(Deadline deadline) = 0;

  // Brings the schema up to what this binary wants. Safe from many replicas at once. Gives the
  // version it found and the one it left.
  virtual Result<std::pair<int, int>> migrate(Deadline deadline) = 0;

  // Every token granted from now on is above `floor`: after a restore, see docs/fencing.md.
  virtual Result<void> raise_tokens(Token floor, Deadline deadline) = 0;
};

}  // namespace baton
