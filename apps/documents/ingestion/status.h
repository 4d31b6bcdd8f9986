#pragma once

// The state of a document. Events about it arrive in any order, so the state is the highest that
// any of them has proved:
//
//   UPLOADED < FAILED (validation) < VALIDATED, REJECTED < FAILED (enrichment) < ENRICHED
//
// A redrive that succeeds after a failure proves a higher state; a late DocumentFailed proves a
// lower one.

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace baton::documents::ingestion {

struct Status {
  std::string_view name;
  int rank = 0;
  bool operator==(const Status&) const = default;
};

inline constexpr Status kUploaded{"UPLOADED", 0};
inline constexpr std::array<std::string_view, 5> kStatusNames = {"UPLOADED", "VALIDATED",
                                                                 "REJECTED", "FAILED", "ENRICHED"};

// What an event proves; `stage` is that of a DocumentFailed. Nothing for an unknown event.
[[nodiscard]] std::optional<Status> proved_by(std::string_view type, std::string_view stage);

}  // namespace baton::documents::ingestion
