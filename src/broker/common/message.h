#pragma once

#include <string>

#include "baton/broker.h"

namespace baton::broker {

inline constexpr std::size_t kMaxShortText = 255;         // bytes: what AMQP calls a short string
inline constexpr std::size_t kMaxHeaderBytes = 64 << 10;  // names and values together
inline constexpr std::size_t kMaxPrefetch = 65'535;       // 16 bits in AMQP

// A queue with dead letters gets a message back so often; the next time it goes to NAME.dlq.
inline constexpr std::uint32_t kDeliveryLimit = 20;

[[nodiscard]] inline std::string dead_letter_queue(const std::string& queue) {
  return queue + ".dlq";
}

// Why no broker would take this message, whatever its topology; empty if one might.
[[nodiscard]] BATON_EXPORT std::string message_problem(const Message& message);

}  // namespace baton::broker
