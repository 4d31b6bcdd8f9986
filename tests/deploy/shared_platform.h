#pragma once

#include "documents/platform.h"

namespace baton::test {

// A document platform on files, one for all cases of a program: it takes seconds to start.
// Documents of every fate have gone through it: enriched, rejected, tried again, given up.
[[nodiscard]] Platform& shared_platform();

// What `/metrics` of a service says.
[[nodiscard]] std::string metrics_of(const Platform& platform, const std::string& service);

// Submits a document for each fate.
void submit_every_fate(const Platform& platform);

}  // namespace baton::test
