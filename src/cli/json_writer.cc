#include "cli/json_writer.h"

#include "baton/name.h"

namespace baton::cli {

void JsonWriter::separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

// Text that is no UTF-8 can only be echoed input; JSON has no place for its bytes.
void JsonWriter::quote(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const bool utf8 = is_valid_utf8_text(text);
  text_ += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    auto byte = static_cast<unsigned char>(c);
    // U+0080 to U+009F are controls too: C2 and the byte itself.
    const bool second_set = utf8 && byte == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (second_set) byte = static_cast<unsigned char>(text[++i]);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (byte < 0x20 || byte == 0x7F || second_set) {
      text_ += "\\u00";
      text_ += kDigits[byte >> 4];
      text_ += kDigits[byte & 15];
    } else if (byte >= 0x80 && !utf8) {
      text_ += "\\ufffd";
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

}  // namespace baton::cli
