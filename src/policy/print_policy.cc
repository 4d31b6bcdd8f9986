#include "policy/print_policy.h"

#include <cctype>

#include "policy/duration.h"

namespace baton::policy {
namespace {

// Text that YAML takes as it stands: a word that starts with a letter. The rest is quoted.
bool is_plain(const std::string& text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.') {
      return false;
    }
  }
  return text != "null";
}

std::string scalar(const std::string& text) {
  if (is_plain(text)) return text;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    auto byte = static_cast<unsigned char>(c);
    // U+0080 to U+009F are controls too: C2 and the byte itself, which is what \x names.
    const bool second_set =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (second_set) byte = static_cast<unsigned char>(text[++i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F || second_set) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <typename Items, typename Print>
std::string list(const Items& items, Print print) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ", ";
    out += print(item);
  }
  return out + "]";
}

void print_rules(const LockRules& rules, const std::string& indent, std::string& out) {
  if (!rules.modes.empty()) {
    out += indent +
           "modes: " + list(rules.modes, [](Mode mode) { return std::string(long_name(mode)); }) +
           "\n";
  }
  if (rules.max_ttl > Millis{0}) out += indent + "max-ttl: " + print_duration(rules.max_ttl) + "\n";
  if (!rules.metadata.empty()) {
    out += indent + "required-metadata: " + list(rules.metadata, scalar) + "\n";
  }
}

void print_block(const std::string& name, const std::string& indent, const std::string& content,
                 std::string& out) {
  out += indent + scalar(name) + (content.empty() ? ": {}\n" : ":\n" + content);
}

}  // namespace

std::string print_policy(const Policy& policy) {
  std::string subjects;
  for (const auto& [name, subject] : policy.subjects) {
    std::string body;
    if (!subject.description.empty()) {
      body += "    description: " + scalar(subject.description) + "\n";
    }
    if (!subject.parent.empty()) body += "    parent: " + scalar(subject.parent) + "\n";
    if (subject.predicate_scoped) body += "    scope: predicate\n";
    print_rules(subject.rules, "    ", body);
    if (!subject.predicates.empty()) {
      body += "    predicates:\n";
      for (const auto& [predicate, rules] : subject.predicates) {
        std::string content;
        print_rules(rules, "        ", content);
        print_block(predicate, "      ", content, body);
      }
    }
    print_block(name, "  ", body, subjects);
  }
  std::string out;
  print_block("subjects", "", subjects, out);
  out += policy.only_declared ? "undeclared: deny\n" : "undeclared: allow\n";
  return out;
}

}  // namespace baton::policy
