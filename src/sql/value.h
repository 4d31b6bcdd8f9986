#pragma once

// Values that are bound to statements, and the rows that come back.
//
//   type                       PostgreSQL                        SQLite
//   std::monostate             NULL                              NULL
//   bool                       boolean                           0 or 1
//   std::int64_t, double       smallint to bigint, real, double  INTEGER, REAL
//   std::string                everything else, as text          TEXT
//   Bytes                      bytea                             BLOB
//   vector of int64 or text    an array, only as a parameter     refused
//
// Text is UTF-8 without NUL bytes, which PostgreSQL cannot store: text with one is refused.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "baton/export.h"

namespace baton::sql {

struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes,
                           std::vector<std::int64_t>, std::vector<std::string>>;
using Values = std::vector<Value>;

// The cells of an answer of a server, read where they are when they are asked for: to copy a wide
// row into values costs about as much as to find it.
class BATON_EXPORT Cells {
 public:
  virtual ~Cells() = default;
  [[nodiscard]] virtual std::size_t columns() const = 0;
  [[nodiscard]] virtual Value value(std::size_t row, std::size_t column) const = 0;
  [[nodiscard]] virtual bool null(std::size_t row, std::size_t column) const = 0;
  // Of a cell that is text or a whole number, as text; nothing for another type, or NULL.
  [[nodiscard]] virtual std::optional<std::string_view> plain(std::size_t row,
                                                              std::size_t column) const = 0;
};

// The accessors convert, because databases differ in the types they answer with (PostgreSQL sums
// bigints to numeric, SQLite has no boolean): integer() reads text in decimal, text() prints
// numbers. NULL, and text that is no number, is 0 or empty.
class BATON_EXPORT Row {
 public:
  explicit Row(Values values) : values_(std::move(values)) {}
  Row(std::shared_ptr<const Cells> cells, std::size_t row) : cells_(std::move(cells)), row_(row) {}

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Value operator[](std::size_t column) const;

  [[nodiscard]] bool null(std::size_t column) const;
  [[nodiscard]] bool boolean(std::size_t column) const { return integer(column) != 0; }
  [[nodiscard]] std::int64_t integer(std::size_t column) const;
  [[nodiscard]] double real(std::size_t column) const;
  [[nodiscard]] std::string text(std::size_t column) const;  // of Bytes: the bytes

 private:
  std::shared_ptr<const Cells> cells_;  // none: in values_
  std::size_t row_ = 0;
  Values values_;
};

class Rows {
 public:
  Rows() = default;
  Rows(std::vector<Row> rows, std::int64_t affected)
      : rows_(std::move(rows)), affected_(affected) {}

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] const Row& operator[](std::size_t row) const { return rows_[row]; }
  [[nodiscard]] const Row& front() const { return rows_.front(); }
  [[nodiscard]] const Row& back() const { return rows_.back(); }
  [[nodiscard]] auto begin() const { return rows_.begin(); }
  [[nodiscard]] auto end() const { return rows_.end(); }
  [[nodiscard]] auto begin() { return rows_.begin(); }
  [[nodiscard]] auto end() { return rows_.end(); }

  // How many rows the statement inserted, updated or deleted, whether or not it returns them.
  [[nodiscard]] std::int64_t affected() const { return affected_; }

 private:
  std::vector<Row> rows_;
  std::int64_t affected_ = 0;
};

}  // namespace baton::sql
