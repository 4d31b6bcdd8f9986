#include "http/target.h"

#include <algorithm>

#include "baton/name.h"
#include "core/percent.h"

namespace baton::http {
namespace {

// In a query, '+' is a space.
std::optional<std::string> decode(std::string text, bool query) {
  if (query) std::replace(text.begin(), text.end(), '+', ' ');
  auto out = core::percent_decoded(text);
  if (!out) return std::nullopt;
  const auto is_control = [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return byte < 0x20 || byte == 0x7F;
  };
  if (std::any_of(out->begin(), out->end(), is_control) || !is_valid_utf8_text(*out)) {
    return std::nullopt;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool read_path(std::string_view path, RequestTarget& target) {
  target.path = path;
  if (path == "/") return true;
  const auto parts = split(path.substr(1), '/');
  if (parts.size() > kMaxSegments) return false;
  for (const auto part : parts) {
    auto decoded = decode(std::string(part), false);
    if (!decoded) return false;
    target.segments.push_back(std::move(*decoded));
  }
  return true;
}

bool read_query(std::string_view query, RequestTarget& target) {
  if (query.empty()) return true;
  const auto parts = split(query, '&');
  if (parts.size() > kMaxQueryPairs) return false;
  for (const auto part : parts) {
    if (part.empty()) continue;
    const auto equals = part.find('=');
    const auto behind = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    auto name = decode(std::string(part.substr(0, equals)), true);
    auto value = decode(std::string(behind), true);
    if (!name || !value) return false;
    target.query.emplace_back(std::move(*name), std::move(*value));
  }
  return true;
}

// A proxy may send the absolute form; whom it names is of no interest here.
std::optional<std::string_view> without_authority(std::string_view text) {
  if (text.starts_with('/')) return text;
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return std::nullopt;
  const auto slash = text.find('/', scheme + 3);
  if (slash == std::string_view::npos) return std::nullopt;
  return text.substr(slash);
}

}  // namespace

std::optional<RequestTarget> parse_target(std::string_view text) {
  const auto local = without_authority(text);
  if (!local || local->find('#') != std::string_view::npos) return std::nullopt;
  const auto mark = local->find('?');
  RequestTarget target;
  if (!read_path(local->substr(0, mark), target)) return std::nullopt;
  if (mark != std::string_view::npos && !read_query(local->substr(mark + 1), target)) {
    return std::nullopt;
  }
  return target;
}

}  // namespace baton::http
