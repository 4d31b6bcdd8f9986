#pragma once

// The bytes of AMQP frames, by librabbitmq's encoders. Nothing here waits or sends.

#include <cstdint>
#include <string>
#include <string_view>

#include <amqp.h>
#include <amqp_framing.h>

#include "baton/broker.h"

namespace baton::broker::rabbitmq {

inline amqp_bytes_t bytes_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}
inline std::string_view view_of(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

inline amqp_table_entry_t entry_of(std::string_view key, std::string_view text) {
  amqp_table_entry_t entry{bytes_of(key), {}};
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = bytes_of(text);
  return entry;
}
inline amqp_table_entry_t entry_of(std::string_view key, bool truth) {
  amqp_table_entry_t entry{bytes_of(key), {}};
  entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entry.value.value.boolean = truth ? 1 : 0;
  return entry;
}
inline amqp_table_entry_t entry_of(std::string_view key, std::int32_t number) {
  amqp_table_entry_t entry{bytes_of(key), {}};
  entry.value.kind = AMQP_FIELD_KIND_I32;
  entry.value.value.i32 = number;
  return entry;
}
template <typename Entries>
amqp_table_t table_of(Entries& entries) {
  return {static_cast<int>(entries.size()), entries.data()};
}

void add_protocol_header(std::string& out);
void add_heartbeat(std::string& out);

// `room` is at least what the method takes. Throws std::length_error if it is not.
void add_method(std::string& out, amqp_channel_t channel, amqp_method_number_t method, void* fields,
                std::size_t room = 4096);

// A message without properties and body, behind a basic.publish.
void add_empty_content(std::string& out, amqp_channel_t channel);

// A mandatory, persistent message. False, and nothing added, if its headers do not fit in a frame.
[[nodiscard]] bool add_message(std::string& out, amqp_channel_t channel, const Message& message,
                               std::size_t frame_max);

}  // namespace baton::broker::rabbitmq
