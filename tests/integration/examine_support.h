#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "baton/store_admin.h"
#include "support/wait.h"

namespace baton::test {

using Codes = std::vector<std::string>;

// What the doctor finds, by name; each finding says what, at what cost, and how to mend it.
inline Codes codes_found(StoreAdmin& admin, Millis ttl) {
  const auto findings = admin.examine(ttl, BootClock::now() + patience);
  EXPECT_TRUE(findings) << findings.error().message;
  Codes found;
  if (!findings) return found;
  for (const Finding& finding : *findings) {
    EXPECT_FALSE(finding.what.empty() || finding.cost.empty() || finding.mend.empty());
    found.push_back(finding.code);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace baton::test
