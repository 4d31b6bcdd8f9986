#include "baton/name.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "core/percent.h"
#include "core/utf8.h"

namespace baton {
namespace {

using core::next_code_point;
using core::percent_decoded;

Error bad_name(std::string message) {
  return {.code = Code::bad_name, .message = "bad name: " + std::move(message)};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<std::vector<std::string>> unescape_all(const std::vector<std::string_view>& parts,
                                              std::size_t from) {
  std::vector<std::string> out;
  for (std::size_t i = from; i < parts.size(); ++i) {
    auto part = percent_decoded(parts[i]);
    if (!part) return bad_name("'%' must be followed by two hexadecimal digits");
    out.push_back(std::move(*part));
  }
  return out;
}

// Most names are plain ASCII, and this is asked of every request: eight bytes at a time.
bool is_plain(std::string_view text) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t odd = 0;  // the highest bit of a byte that is below 0x20 or above 0x7E
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data(), 8);
    const std::uint64_t deleted = eight ^ (kEach * 0x7F);
    odd |= eight | ((eight - kEach * 0x20) & ~eight) | ((deleted - kEach) & ~deleted);
  }
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E) return false;
  }
  return (odd & (kEach * 0x80)) == 0;
}

// Runs of what needs no escape, which mostly is all, at once.
void add_escaped(std::string& out, std::string_view part) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::size_t from = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto byte = static_cast<unsigned char>(part[i]);
    if (byte != ':' && byte != '%' && byte != '*' && byte >= 0x20 && byte != 0x7F) continue;
    out += part.substr(from, i - from);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
    from = i + 1;
  }
  out += part.substr(from);
}

bool is_control(std::uint32_t point) { return point < 0x20 || (point >= 0x7F && point <= 0x9F); }

Result<void> check_part(std::string_view part, std::string_view what) {
  if (part.empty()) return bad_name(std::string(what) + " is empty");
  if (is_plain(part)) return {};
  for (std::size_t i = 0; i < part.size();) {
    const auto point = next_code_point(part, i);
    if (!point) return bad_name(std::string(what) + " is not valid UTF-8");
    if (is_control(*point)) return bad_name(std::string(what) + " has a control character");
  }
  return {};
}

}  // namespace

bool is_valid_utf8_text(std::string_view text) {
  if (is_plain(text)) return true;
  for (std::size_t i = 0; i < text.size();) {
    const auto point = next_code_point(text, i);
    if (!point || *point == 0) return false;
  }
  return true;
}

std::string escape_part(std::string_view part) {
  std::string out;
  add_escaped(out, part);
  return out;
}

Result<void> validate(const LockName& name) {
  if (auto ok = check_part(name.region, "the region"); !ok) return ok;
  if (auto ok = check_part(name.subject, "the subject"); !ok) return ok;
  if (auto ok = check_part(name.predicate, "the predicate"); !ok) return ok;
  std::size_t bytes = name.region.size() + name.subject.size() + name.predicate.size() + 2;
  for (const auto& resource : name.resources) {
    if (auto ok = check_part(resource, "a resource"); !ok) return ok;
    bytes += 1 + resource.size();
  }
  if (bytes > kMaxNameBytes) {
    return bad_name("with region and predicate it has " + std::to_string(bytes) +
                    " bytes, at most " + std::to_string(kMaxNameBytes) + " are allowed");
  }
  return {};
}

std::string print(const LockName& name, Mode mode) {
  std::string out = "lock";
  if (name.region != kDefaultRegion) out += "@" + escape_part(name.region);
  out += ":";
  out += long_name(mode);
  out += ":" + escape_part(name.subject) + ":" + escape_part(name.predicate);
  for (const auto& resource : name.resources) out += ":" + escape_part(resource);
  return out;
}

Result<std::pair<LockName, Mode>> parse_lock_text(std::string_view text) {
  if (!text.starts_with("lock:") && !text.starts_with("lock@")) {
    return bad_name("the text form starts with 'lock:' or 'lock@'");
  }
  const auto parts = split(text, ':');
  if (parts.size() < 4) return bad_name("the text form is lock:{mode}:{subject}:{predicate}[:…]");
  const auto mode = parse_mode(parts[1]);
  if (!mode) return bad_name("unknown mode '" + std::string(parts[1]) + "'");
  LockName name;
  if (parts[0].size() > 4) {
    auto region = percent_decoded(parts[0].substr(5));
    if (!region) return bad_name("'%' must be followed by two hexadecimal digits");
    name.region = std::move(*region);
  }
  auto rest = unescape_all(parts, 2);
  if (!rest) return rest.error();
  name.subject = std::move((*rest)[0]);
  name.predicate = std::move((*rest)[1]);
  name.resources.assign(std::make_move_iterator(rest->begin() + 2),
                        std::make_move_iterator(rest->end()));
  if (auto ok = validate(name); !ok) return ok.error();
  return std::pair{std::move(name), *mode};
}

Result<LockName> parse_path(std::string_view text) {
  auto parts = unescape_all(split(text, '/'), 0);
  if (!parts) return parts.error();
  LockName name;
  name.subject = std::move(parts->front());
  name.resources.assign(std::make_move_iterator(parts->begin() + 1),
                        std::make_move_iterator(parts->end()));
  if (auto ok = validate(name); !ok) return ok.error();
  return name;
}

std::string print_path(const LockName& name) {
  const auto part = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '/') {
        out += "%2F";
      } else if (c == '%') {
        out += "%25";
      } else {
        out += c;
      }
    }
    return out;
  };
  std::string out = part(name.subject);
  for (const auto& resource : name.resources) out += "/" + part(resource);
  return out;
}

std::string key_of(const LockName& name, bool predicate_scoped) {
  std::size_t size = name.region.size() + 1 + name.subject.size();
  for (const auto& resource : name.resources) size += 1 + resource.size();
  std::string key;
  key.reserve(size);  // if nothing is to escape
  add_escaped(key, name.region);
  key += ':';
  add_escaped(key, name.subject);
  for (const auto& resource : name.resources) {
    key += ':';
    add_escaped(key, resource);
  }
  if (predicate_scoped) {
    key += "::";
    add_escaped(key, name.predicate);
  }
  return key;
}

Result<LockName> parse_key(std::string_view key) {
  LockName name;
  name.predicate.clear();
  if (const auto scoped = key.find("::"); scoped != std::string_view::npos) {
    auto predicate = percent_decoded(key.substr(scoped + 2));
    if (!predicate || predicate->empty()) return bad_name("a key with a broken predicate");
    name.predicate = std::move(*predicate);
    key = key.substr(0, scoped);
  }
  auto parts = unescape_all(split(key, ':'), 0);
  if (!parts) return parts.error();
  if (parts->size() < 2) return bad_name("a key is region:subject[:…]");
  for (const auto& part : *parts) {
    if (part.empty()) return bad_name("a key with an empty part");
  }
  name.region = std::move((*parts)[0]);
  name.subject = std::move((*parts)[1]);
  name.resources.assign(std::make_move_iterator(parts->begin() + 2),
                        std::make_move_iterator(parts->end()));
  return name;
}

}  // namespace baton
