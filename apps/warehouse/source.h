#pragma once

// The external database that observers poll. It is only read.
//
// Rows are found in the order of a position. A row may become visible after rows with a higher
// position, and many rows may have the same one. What a source can say is its horizon: every row
// with a position below it is visible by now, or never will be.
//
//   Cursor::time  The position is the row's changed_at. The horizon is the source's clock less the
//                 lateness, which is a promise of the people who run the source: a row is visible
//                 at most so long after its changed_at.
//   Cursor::xid   The position is the transaction that wrote the row (PostgreSQL, column
//                 written_by xid8). The horizon is that of the server's snapshot: no assumption.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/warehouse/observer_type.h"
#include "baton/clock.h"
#include "sql/connection.h"

namespace baton::warehouse {

enum class Cursor : std::uint8_t { time, xid };
[[nodiscard]] std::string_view to_string(Cursor cursor);

struct Position {
  std::int64_t at = 0;
  std::string id;
};

struct SourceRow {
  Position position;
  std::string payload;  // JSON
};

struct Horizon {
  std::int64_t complete_below = 0;
  std::int64_t clock = 0;  // of the source, µs since 1970
};

class Source {
 public:
  virtual ~Source() = default;
  virtual Result<Horizon> horizon() = 0;

  // Rows after `after`, in the order of (at, id), as they are visible now.
  virtual Result<std::vector<SourceRow>> read(const std::string& channel, const Position& after,
                                              std::size_t limit) = 0;
};

struct SourceOptions {
  Cursor cursor = Cursor::time;
  Millis lateness{5'000};
};

// A table of a database; both must outlive it.
class TableSource final : public Source {
 public:
  TableSource(sql::Connection& database, const ObserverType& type, const SourceOptions& options);

  Result<Horizon> horizon() override;
  Result<std::vector<SourceRow>> read(const std::string& channel, const Position& after,
                                      std::size_t limit) override;

 private:
  sql::Connection& database_;
  const ObserverType& type_;
  const SourceOptions options_;
  std::string read_sql_;
};

// The source's clock, µs since 1970.
[[nodiscard]] Result<std::int64_t> clock_of(sql::Connection& database);

}  // namespace baton::warehouse
