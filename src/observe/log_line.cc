#include "observe/log_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ctime>

namespace baton::observe {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"DEBUG", "INFO", "WARN", "ERROR"};
constexpr std::array<std::string_view, 6> kOurs = {"@timestamp", "level",   "logger_name",
                                                   "message",    "service", "truncated"};
constexpr std::array<std::string_view, 6> kSecretKeys = {"password", "passwd",        "secret",
                                                         "api_key",  "authorization", "credential"};
constexpr std::string_view kHidden = "***";
constexpr std::string_view kCut = "…";
constexpr std::size_t kMaxKey = 64;

std::string timestamp(std::chrono::system_clock::time_point time) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time);
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(millis));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ",
                static_cast<int>(millis.time_since_epoch().count() % 1000));
  return text.data();
}

// The bytes of the UTF-8 character at the front; 0 if there is none.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool beyond = (byte(0) == 0xED && byte(1) > 0x9F) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return overlong || beyond ? 0 : length;
}

void append_escaped_byte(std::string& out, unsigned char byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(byte));
  out += text.data();
}

// Escapes what would end the line or the string, or move a terminal's cursor; cuts after `max`
// bytes, never inside a character or an escape.
std::string escaped(std::string_view text, std::size_t max, bool quotes) {
  std::string out;
  while (!text.empty()) {
    if (out.size() + 6 > max) return out.append(kCut);
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = character_at(text);
    if (length == 0) {
      out += "\\ufffd";
    } else if (byte < 0x20 || byte == 0x7F) {
      append_escaped_byte(out, byte);
    } else if (length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) {
      append_escaped_byte(out, static_cast<unsigned char>(text[1]));  // a control of Latin 1
    } else if (quotes && (byte == '"' || byte == '\\')) {
      out += '\\';
      out += text.front();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

bool is_secret(std::string_view key) {
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kSecretKeys.begin(), kSecretKeys.end(), [&](std::string_view secret) {
    return lower.find(secret) != std::string::npos;
  });
}

std::string shown_value(const std::pair<std::string, std::string>& field) {
  return is_secret(field.first) ? std::string(kHidden) : without_passwords(field.second);
}

bool is_ours(std::string_view key) {
  return std::find(kOurs.begin(), kOurs.end(), key) != kOurs.end();
}

const std::string* node_in(const LogFields& fields) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [](const auto& field) { return field.first == "node"; });
  return found == fields.end() ? nullptr : &found->second;
}

// Builds one object; a field that does not fit is left out, and that is said at the end.
class JsonLine {
 public:
  explicit JsonLine(std::size_t max) : max_(max) {}

  void add(std::string_view key, std::string_view value, std::size_t most) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_ += escaped(key, kMaxKey, true);
    text_ += "\":\"";
    text_ += escaped(value, most, true);
    text_ += '"';
  }
  void add_if_it_fits(std::string_view key, std::string_view value) {
    if (text_.size() + key.size() + 64 > max_) {
      truncated_ = true;
      return;
    }
    add(key, value, max_ - text_.size() - key.size() - 32);
  }
  std::string end() {
    if (truncated_) text_ += ",\"truncated\":true";
    return std::move(text_) + "}\n";
  }

 private:
  const std::size_t max_;
  std::string text_;
  bool truncated_ = false;
};

// Hides what stands between `begin` and the first of `ends`.
void hide(std::string& text, std::size_t begin, std::string_view ends) {
  const std::size_t end = std::min(text.find_first_of(ends, begin), text.size());
  text.replace(begin, end - begin, kHidden);
}

}  // namespace

std::string without_passwords(std::string_view given) {
  std::string text(given);
  for (auto found = text.find("://"); found != std::string::npos; found = text.find("://", found)) {
    found += 3;
    const auto end = std::min(text.find_first_of("/ \t\n\"'<>?", found), text.size());
    const auto at = text.rfind('@', end == 0 ? 0 : end - 1);
    const auto colon = text.find(':', found);
    if (at == std::string::npos || at < found || colon >= at) continue;
    text.replace(colon + 1, at - colon - 1, kHidden);
  }
  for (auto found = text.find("password="); found != std::string::npos;
       found = text.find("password=", found)) {
    found += std::string_view("password=").size();
    hide(text, found, "& \t\n\"'");
  }
  return text;
}

std::string json_line(const LogRecord& record, std::size_t max) {
  const std::string* node = node_in(record.fields);
  JsonLine line(max);
  line.add("@timestamp", timestamp(record.time), max);
  line.add("level", kLevels[static_cast<std::size_t>(record.level)], max);
  line.add("logger_name", record.logger, 128);
  line.add("message", without_passwords(record.message), max / 2);
  line.add("service", record.service, 128);
  line.add("node", node != nullptr ? *node : record.node, 256);
  for (const auto& field : record.fields) {
    if (field.first == "node") continue;
    const std::string key = is_ours(field.first) ? "_" + field.first : field.first;
    line.add_if_it_fits(key, shown_value(field));
  }
  return line.end();
}

std::string text_line(const LogRecord& record, std::size_t max) {
  const std::string* node = node_in(record.fields);
  std::string line = timestamp(record.time) + " ";
  std::string level(kLevels[static_cast<std::size_t>(record.level)]);
  level.resize(5, ' ');
  line += level + " [" + escaped(node != nullptr ? *node : record.node, 256, false) + "] ";
  line += escaped(without_passwords(record.message), max / 2, false);
  for (const auto& field : record.fields) {
    if (field.first == "node") continue;
    if (line.size() + field.first.size() + 64 > max) break;
    line += "  " + escaped(field.first, kMaxKey, false) + "=";
    line += escaped(shown_value(field), max - line.size(), false);
  }
  return line + "\n";
}

}  // namespace baton::observe
