#include "baton/event.h"

namespace baton {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == '.' || c == '_' || c == '-' || c == ' '; }

// PDFUploaded: before the U, not within PDF.
bool begins_word(std::string_view type, std::size_t i) {
  if (i == 0 || !is_upper(type[i])) return false;
  const char before = type[i - 1];
  if (is_lower(before) || is_digit(before)) return true;
  return is_upper(before) && i + 1 < type.size() && is_lower(type[i + 1]);
}

}  // namespace

// The SQL function outbox_add does the same.
std::string routing_key_of(std::string_view type) {
  std::string key;
  const auto end_word = [&] {
    if (!key.empty() && key.back() != '.') key += '.';
  };
  for (std::size_t i = 0; i < type.size(); ++i) {
    const char c = type[i];
    if (is_separator(c)) {
      end_word();
      continue;
    }
    if (begins_word(type, i)) end_word();
    key += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (!key.empty() && key.back() == '.') key.pop_back();
  return key;
}

}  // namespace baton
