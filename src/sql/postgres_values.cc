#include "sql/postgres_values.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace baton::sql {
namespace {

// pg_type.oid, which never change.
enum TypeOid : Oid {
  kBool = 16,
  kBytea = 17,
  kInt8 = 20,
  kInt2 = 21,
  kInt4 = 23,
  kOid = 26,
  kFloat4 = 700,
  kFloat8 = 701,
};

std::string printed(double number) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", number);
  return buffer;
}

std::string array_literal(const std::vector<std::int64_t>& numbers) {
  std::string literal = "{";
  for (const std::int64_t number : numbers) {
    if (literal.size() > 1) literal += ',';
    literal += std::to_string(number);
  }
  return literal + "}";
}

// Every element in quotes, so that an empty one and the word NULL are texts.
std::string array_literal(const std::vector<std::string>& texts) {
  std::string literal = "{";
  for (const std::string& text : texts) {
    literal += literal.size() > 1 ? ",\"" : "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') literal += '\\';
      literal += c;
    }
    literal += '"';
  }
  return literal + "}";
}

struct Printer {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(bool value) const { return value ? "t" : "f"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return printed(value); }
  std::string operator()(const std::string&) const { return {}; }  // bound where it is
  std::string operator()(const Bytes&) const { return {}; }        // the same
  template <typename Element>
  std::string operator()(const std::vector<Element>& value) const {
    return array_literal(value);
  }
};

template <typename Number>
Number parsed(const char* text, int length) {
  Number number{};
  std::from_chars(text, text + length, number);
  return number;
}

double parsed_real(const char* text) { return std::strtod(text, nullptr); }  // NaN and Infinity too

Value value_of(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return {};
  const char* text = PQgetvalue(result, row, column);
  const int length = PQgetlength(result, row, column);
  switch (PQftype(result, column)) {
    case kBool: return *text == 't';
    case kInt2:
    case kInt4:
    case kInt8:
    case kOid: return parsed<std::int64_t>(text, length);
    case kFloat4:
    case kFloat8: return parsed_real(text);
    case kBytea: {
      std::size_t size = 0;
      const std::unique_ptr<unsigned char, decltype(&PQfreemem)> bytes(
          PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &size), &PQfreemem);
      return Bytes{std::string(reinterpret_cast<const char*>(bytes.get()), size)};
    }
    default: return std::string(text, static_cast<std::size_t>(length));
  }
}

}  // namespace

PostgresParameters::PostgresParameters(const Values& values) {
  texts_.reserve(values.size());  // or the pointers into short texts would go stale
  for (const Value& value : values) {
    texts_.push_back(std::visit(Printer{}, value));
    const auto* text = std::get_if<std::string>(&value);
    const auto* bytes = std::get_if<Bytes>(&value);
    const std::string& bound = text != nullptr    ? *text
                               : bytes != nullptr ? bytes->data
                                                  : texts_.back();
    const bool null = std::holds_alternative<std::monostate>(value);
    pointers_.push_back(null ? nullptr : bound.c_str());
    lengths_.push_back(static_cast<int>(bound.size()));
    formats_.push_back(bytes != nullptr ? 1 : 0);
    types_.push_back(bytes != nullptr ? Oid{kBytea} : Oid{0});
  }
}

// Owns what libpq has read.
class PostgresCells final : public Cells {
 public:
  explicit PostgresCells(PostgresResult result)
      : result_(std::move(result)), columns_(static_cast<std::size_t>(PQnfields(result_.get()))) {
    for (std::size_t column = 0; column < columns_; ++column) {
      plain_.push_back(is_plain(PQftype(result_.get(), static_cast<int>(column))));
    }
  }

  [[nodiscard]] std::size_t columns() const override { return columns_; }
  [[nodiscard]] Value value(std::size_t row, std::size_t column) const override {
    return value_of(result_.get(), static_cast<int>(row), static_cast<int>(column));
  }
  [[nodiscard]] bool null(std::size_t row, std::size_t column) const override {
    return PQgetisnull(result_.get(), static_cast<int>(row), static_cast<int>(column)) != 0;
  }
  [[nodiscard]] std::optional<std::string_view> plain(std::size_t row,
                                                      std::size_t column) const override {
    if (!plain_[column] || null(row, column)) return {};
    const int r = static_cast<int>(row);
    const int c = static_cast<int>(column);
    return std::string_view(PQgetvalue(result_.get(), r, c),
                            static_cast<std::size_t>(PQgetlength(result_.get(), r, c)));
  }

 private:
  static bool is_plain(Oid type) {
    return type != kBool && type != kFloat4 && type != kFloat8 && type != kBytea;
  }

  const PostgresResult result_;
  const std::size_t columns_;
  std::vector<bool> plain_;  // by column
};

Rows rows_of(PostgresResult result) {
  // A SELECT reports its rows in the same place.
  const std::string_view tag = PQcmdStatus(result.get());
  const bool wrote = tag.starts_with("INSERT") || tag.starts_with("UPDATE") ||
                     tag.starts_with("DELETE") || tag.starts_with("MERGE");
  const std::int64_t affected = wrote ? std::atoll(PQcmdTuples(result.get())) : 0;
  const auto count = static_cast<std::size_t>(PQntuples(result.get()));
  if (count == 0) return Rows({}, affected);
  const auto cells = std::make_shared<const PostgresCells>(std::move(result));
  std::vector<Row> rows;
  rows.reserve(count);
  for (std::size_t row = 0; row < count; ++row) rows.emplace_back(cells, row);
  return Rows(std::move(rows), affected);
}

}  // namespace baton::sql
