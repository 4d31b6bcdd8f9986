#include "core/fence.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/bad_request.h"
#include "json/json.h"

namespace baton {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxTextBytesOfFence = std::size_t{1} << 20;
constexpr std::size_t kMaxKeyBytes = 1024;

std::optional<Token> token_in(const json& value) {
  if (value.is_number_unsigned()) return value.get<Token>();
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr) return {};
  if (text->starts_with('0')) return {};
  Token token = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, problem] = std::from_chars(text->data(), end, token);
  if (problem != std::errc{} || rest != end) return {};
  return token;
}

std::string text_in(const json& object, const char* field) {
  const auto at = object.find(field);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

Error not_a_lease() {
  return bad_request(
      "a lease is written as in $BATON_FENCE: "
      "[{\"name\":\"DEFAULT:report\",\"mode\":\"X\",\"token\":\"42\"}]");
}

}  // namespace

bool overtakes(const FenceToken& newer, const FenceToken& older) {
  return newer.key == older.key && newer.token > older.token && !compatible(newer.mode, older.mode);
}

std::string print_fence_tokens(std::span<const FenceToken> tokens) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FenceToken& token : tokens) {
    list.push_back({{"name", token.key},
                    {"mode", short_name(token.mode)},
                    {"token", std::to_string(token.token)}});
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<std::vector<FenceToken>> parse_fence_tokens(std::string_view text) {
  if (text.size() > kMaxTextBytesOfFence) return not_a_lease();
  // Does not keep values that are nested deeper than those of a lease.
  const auto shallow = [](int depth, json::parse_event_t, const json&) { return depth <= 2; };
  const json list = json::parse(text.begin(), text.end(), shallow, false);
  if (!list.is_array()) return not_a_lease();
  std::vector<FenceToken> tokens;
  for (const json& item : list) {
    if (!item.is_object()) return not_a_lease();
    const auto mode = parse_mode(text_in(item, "mode"));
    const auto token = token_in(item.value("token", json()));
    if (!mode || !token) return not_a_lease();
    tokens.push_back({text_in(item, "name"), *mode, *token});
  }
  if (auto fine = core::in_fence_order(tokens); !fine) return fine.error();
  return tokens;
}

}  // namespace baton

namespace baton::core {

std::vector<FenceToken> fence_tokens(std::span<const Target> targets,
                                     std::span<const Token> tokens) {
  std::vector<FenceToken> all;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    // A token that is missing is one that every fence refuses.
    all.push_back({targets[i].key, targets[i].mode, i < tokens.size() ? tokens[i] : 0});
  }
  return all;
}

Result<std::vector<FenceToken>> in_fence_order(std::span<const FenceToken> tokens) {
  if (tokens.empty() || tokens.size() > kMaxFenceTokens) {
    return bad_request("a fence takes from 1 to " + std::to_string(kMaxFenceTokens) + " names");
  }
  std::vector<FenceToken> sorted(tokens.begin(), tokens.end());
  for (const FenceToken& token : sorted) {
    if (token.key.empty() || token.key.size() > kMaxKeyBytes ||
        token.key.find('\0') != std::string::npos || token.token == 0 ||
        token.token > kMaxFenceToken || token.mode > Mode::X) {
      return bad_request("a fence takes a name, a mode and a token from 1 to " +
                         std::to_string(kMaxFenceToken));
    }
  }
  std::sort(sorted.begin(), sorted.end(), [](const FenceToken& a, const FenceToken& b) {
    return a.key != b.key ? a.key < b.key : a.token > b.token;
  });
  return sorted;
}

}  // namespace baton::core
