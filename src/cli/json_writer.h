#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::cli {

// Writes one JSON document from left to right. The caller closes what it opens.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  template <std::integral Number>
  JsonWriter& value(Number number) {
    if constexpr (std::same_as<Number, bool>) return raw(number ? "true" : "false");
    return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }
  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  bool first_ = true;  // of what is open
};

}  // namespace baton::cli
