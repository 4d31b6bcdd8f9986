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

Rows rows_of(const PGresult* result) {
  const int columns = PQnfields(result);
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(PQntuples(result)));
  for (int row = 0; row < PQntuples(result); ++row) {
    Values values;
    values.reserve(static_cast<std::size_t>(columns));
    for (int column = 0; column < columns; ++column) {
      values.push_back(value_of(result, row, column));
    }
    rows.emplace_back(std::move(values));
  }
  // A SELECT reports its rows in the same place.
  const std::string_view tag = PQcmdStatus(const_cast<PGresult*>(result));
  const bool wrote = tag.starts_with("INSERT") || tag.starts_with("UPDATE") ||
                     tag.starts_with("DELETE") || tag.starts_with("MERGE");
  const std::int64_t affected = wrote ? std::atoll(PQcmdTuples(const_cast<PGresult*>(result))) : 0;
  return Rows(std::move(rows), affected);
}

}  // namespace baton::sql
