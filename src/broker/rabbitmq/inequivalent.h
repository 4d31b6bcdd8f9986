#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "baton/export.h"

namespace baton::broker::rabbitmq {

// What RabbitMQ says when a queue or an exchange exists with another argument.
struct Inequivalent {
  struct Value {
    std::string text;  // "none" if the argument is not there
    std::string type;  // as RabbitMQ calls it; empty if it does not say
    [[nodiscard]] bool none() const { return type.empty() && text == "none"; }
    bool operator==(const Value&) const = default;
  };
  std::string argument;
  Value wanted;
  Value there;
  bool operator==(const Inequivalent&) const = default;
};

// Nothing if the text says something else, or is cut off: AMQP has room for 255 bytes.
[[nodiscard]] BATON_EXPORT std::optional<Inequivalent> parse_inequivalent(std::string_view text);

}  // namespace baton::broker::rabbitmq
