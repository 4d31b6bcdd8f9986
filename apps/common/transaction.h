#pragma once

#include <functional>
#include <string>

#include "baton/result.h"

namespace baton::apps {

// Runs `body` in a transaction that `begin` begins, where `script` runs SQL. Of a COMMIT that fails
// nobody knows whether it came about.
inline Result<void> in_transaction(const std::function<Result<void>(const std::string&)>& script,
                                   const std::string& begin,
                                   const std::function<Result<void>()>& body) {
  if (auto ok = script(begin); !ok) return ok;
  auto done = body();
  if (done) {
    done = script("COMMIT");
    if (!done) done.error().in_doubt = true;
  }
  if (!done) (void)script("ROLLBACK");
  return done;
}

}  // namespace baton::apps
