#include "sql/value.h"

#include <array>
#include <charconv>

namespace baton::sql {
namespace {

template <typename Number>
Number parsed(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

template <typename Number>
std::string printed(Number number) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

template <typename Number>
Number number_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<Number>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return static_cast<Number>(*real);
  if (const auto* truth = std::get_if<bool>(&value)) return static_cast<Number>(*truth ? 1 : 0);
  if (const auto* text = std::get_if<std::string>(&value)) return parsed<Number>(*text);
  return Number{};
}

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return printed(*whole);
  if (const auto* real = std::get_if<double>(&value)) return printed(*real);
  if (const auto* bytes = std::get_if<Bytes>(&value)) return bytes->data;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return {};
}

}  // namespace

std::size_t Row::size() const { return cells_ ? cells_->columns() : values_.size(); }

Value Row::operator[](std::size_t column) const {
  return cells_ ? cells_->value(row_, column) : values_[column];
}

bool Row::null(std::size_t column) const {
  return cells_ ? cells_->null(row_, column)
                : std::holds_alternative<std::monostate>(values_[column]);
}

std::int64_t Row::integer(std::size_t column) const {
  if (!cells_) return number_of<std::int64_t>(values_[column]);
  if (const auto plain = cells_->plain(row_, column)) return parsed<std::int64_t>(*plain);
  return number_of<std::int64_t>(cells_->value(row_, column));
}

double Row::real(std::size_t column) const { return number_of<double>((*this)[column]); }

std::string Row::text(std::size_t column) const {
  if (!cells_) return text_of(values_[column]);
  if (const auto plain = cells_->plain(row_, column)) return std::string(*plain);
  return text_of(cells_->value(row_, column));
}

}  // namespace baton::sql
