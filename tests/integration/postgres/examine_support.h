#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "baton/store_admin.h"
#include "support/wait.h"

namespace baton::test {

using Codes = std::vector<std::string>;

// What the doctor finds, by name; each finding says what, with which consequence, and the remedy.
inline Codes codes_found(StoreAdmin& admin, Millis ttl) {
  const auto findings = admin.examine(ttl, BootClock::now() + patience);
  EXPECT_TRUE(findings) << findings.error().message;
  Codes found;
  if (!findings) return found;
  for (const Finding& finding : *findings) {
    EXPECT_FALSE(finding.what.empty() || finding.consequence.empty() || finding.remedy.empty());
    found.push_back(finding.code);
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline std::optional<Severity> severity_of(StoreAdmin& admin, const std::string& code, Millis ttl) {
  const auto findings = admin.examine(ttl, BootClock::now() + patience);
  EXPECT_TRUE(findings) << findings.error().message;
  if (!findings) return std::nullopt;
  const auto found = std::ranges::find(*findings, code, &Finding::code);
  return found == findings->end() ? std::nullopt : std::optional(found->severity);
}

// How bad it is that a write takes 100 ms or more depends on the TTL.
inline void expect_by_ttl(StoreAdmin& admin, const std::string& code) {
  EXPECT_EQ(severity_of(admin, code, Millis(200)), Severity::danger);
  // A machine that is busy may add to it: then it is asked again.
  EXPECT_TRUE(
      poll_until([&] { return severity_of(admin, code, Millis(900)) == Severity::warning; }));
  EXPECT_EQ(severity_of(admin, code, std::chrono::hours(1)), std::nullopt);
}

}  // namespace baton::test
