#include "broker/rabbitmq/inequivalent.h"

namespace baton::broker::rabbitmq {
namespace {

// none | 'TEXT' | the value 'TEXT' of type 'TYPE'
std::optional<Inequivalent::Value> parse_value(std::string_view text) {
  if (text == "none") return Inequivalent::Value{"none", ""};
  constexpr std::string_view kTyped = "the value ";
  std::string_view type;
  if (text.starts_with(kTyped)) {
    constexpr std::string_view kOfType = "' of type '";
    const auto at = text.rfind(kOfType);
    if (at == std::string_view::npos || !text.ends_with('\'')) return std::nullopt;
    type = text.substr(at + kOfType.size());
    type.remove_suffix(1);
    text = text.substr(kTyped.size(), at + 1 - kTyped.size());
  }
  if (text.size() < 2 || !text.starts_with('\'') || !text.ends_with('\'')) return std::nullopt;
  return Inequivalent::Value{std::string(text.substr(1, text.size() - 2)), std::string(type)};
}

}  // namespace

// PRECONDITION_FAILED - inequivalent arg 'A' for queue 'q' in vhost '/': received V but current is
// V
std::optional<Inequivalent> parse_inequivalent(std::string_view text) {
  constexpr std::string_view kBegin = "inequivalent arg '";
  constexpr std::string_view kReceived = "': received ";  // behind a name, which may be anything
  constexpr std::string_view kCurrent = " but current is ";
  const auto begin = text.find(kBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  const auto argument = begin + kBegin.size();
  const auto argument_end = text.find("' for ", argument);
  const auto received = text.rfind(kReceived);
  const auto current = text.rfind(kCurrent);
  if (argument_end == std::string_view::npos || received == std::string_view::npos ||
      current == std::string_view::npos || received < argument_end || current < received) {
    return std::nullopt;
  }
  const auto value = received + kReceived.size();
  auto wanted = parse_value(text.substr(value, current - value));
  auto there = parse_value(text.substr(current + kCurrent.size()));
  if (!wanted || !there) return std::nullopt;
  return Inequivalent{std::string(text.substr(argument, argument_end - argument)),
                      std::move(*wanted), std::move(*there)};
}

}  // namespace baton::broker::rabbitmq
