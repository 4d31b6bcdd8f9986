#include "broker/common/message.h"

#include <array>
#include <utility>

namespace baton::broker {

std::string message_problem(const Message& message) {
  const std::array<std::pair<const char*, const std::string*>, 4> texts{
      {{"exchange", &message.exchange},
       {"routing key", &message.routing_key},
       {"id", &message.id},
       {"content type", &message.content_type}}};
  for (const auto& [what, text] : texts) {
    if (text->size() <= kMaxShortText) continue;
    return std::string("its ") + what + " has " + std::to_string(text->size()) +
           " bytes, at most " + std::to_string(kMaxShortText) + " are allowed";
  }
  if (message.body.size() > kMaxMessageBody) {
    return "too large: its body has " + std::to_string(message.body.size()) + " bytes, at most " +
           std::to_string(kMaxMessageBody) + " are allowed";
  }
  std::size_t bytes = 0;
  for (const auto& [name, value] : message.headers) {
    if (name.empty() || name.size() > kMaxShortText) {
      return "the name of a header has from 1 to " + std::to_string(kMaxShortText) + " bytes";
    }
    bytes += name.size() + value.size();
  }
  if (bytes > kMaxHeaderBytes) {
    return "too large: its headers have " + std::to_string(bytes) + " bytes, at most " +
           std::to_string(kMaxHeaderBytes) + " are allowed";
  }
  return {};
}

}  // namespace baton::broker
