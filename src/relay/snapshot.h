#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/export.h"

namespace baton::relay {

using Xid = std::uint64_t;  // xid8 of PostgreSQL: with its epoch, never used twice by one cluster

// Which transactions a statement sees: pg_snapshot of PostgreSQL. The default one sees none.
struct BATON_EXPORT Snapshot {
  Xid xmin = 1;               // all below have ended
  Xid xmax = 1;               // none from here on had ended
  std::vector<Xid> xip = {};  // those in between that had not, in rising order

  // Whether the transaction had ended: what it wrote is visible, if it committed.
  [[nodiscard]] bool shows(Xid xid) const;

  // What both show.
  [[nodiscard]] Snapshot common(const Snapshot& other) const;

  // "10:20:10,14,15", as pg_snapshot is written.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static std::optional<Snapshot> parse(std::string_view text);

  bool operator==(const Snapshot&) const = default;
};

}  // namespace baton::relay
