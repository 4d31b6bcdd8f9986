#pragma once

// What an operator does to a store, apart from locking: create its schema, look at it, mend it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

enum class Severity : std::uint8_t {
  advice,   // costs something, but no promise
  warning,  // a fault that is bound to come some day would break a promise, or be slow to mend
  danger,   // the store does not work, or a promise is already without ground
};
[[nodiscard]] BATON_EXPORT std::string_view to_string(Severity severity);

// Something about a deployment that weakens what Baton promises, in plain words.
struct Finding {
  std::string code;  // short and stable, for programs
  Severity severity = Severity::warning;
  std::string what;         // is so
  std::string consequence;  // what it leads to, and in which fault
  std::string remedy;       // what to do about it
};

// What migrate() would do.
struct MigrationPlan {
  int from = 0;            // the version that is there; 0: none
  int to = 0;              // the one it would leave
  bool functions = false;  // replaces the functions of a schema whose tables stay as they are
  std::string sql = {};    // the same as a script for psql; empty if nothing is to be done, or if
                           // the store is no PostgreSQL
  [[nodiscard]] bool empty() const { return from == to && !functions; }
};

class BATON_EXPORT StoreAdmin {
 public:
  virtual ~StoreAdmin() = default;

  // Works on a store without a schema too: schema_version is 0 then.
  virtual Result<StoreStatus> status(Deadline deadline) = 0;

  // Brings the schema up to what this binary wants. Safe from many replicas at once. Gives the
  // version it found and the one it left.
  virtual Result<std::pair<int, int>> migrate(Deadline deadline) = 0;

  // Changes nothing. Refuses what migrate() would refuse.
  virtual Result<MigrationPlan> plan_migration(Deadline deadline) {
    const auto found = status(deadline);
    if (!found) return found.error();
    return MigrationPlan{.from = found->schema_version, .to = found->schema_expected};
  }

  // Every token granted from now on is above `floor`: after a restore, see docs/fencing.md.
  virtual Result<void> raise_tokens(Token floor, Deadline deadline) = 0;

  // Removes what the store keeps under this key if it is damaged, and only then: its note is gone,
  // and a holder of the name no longer holds it, though it may not know. Tokens still grow.
  virtual Result<void> forget_damaged(const std::string& /*key*/, Deadline /*deadline*/) {
    return Error{.code = Code::unsupported,
                 .message = "this store keeps no documents that could be damaged"};
  }

  // What weakens the promise, worst first; `ttl` is the shortest in use. Works on a store without
  // a schema too. An error means that nothing could be found out.
  virtual Result<std::vector<Finding>> examine(Millis /*ttl*/, Deadline /*deadline*/) {
    return std::vector<Finding>{};
  }
};

}  // namespace baton
