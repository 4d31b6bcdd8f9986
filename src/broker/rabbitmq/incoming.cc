#include "broker/rabbitmq/incoming.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace baton::broker::rabbitmq {
namespace {

std::optional<std::int64_t> number_in(const amqp_field_value_t& value) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_I8: return value.value.i8;
    case AMQP_FIELD_KIND_U8: return value.value.u8;
    case AMQP_FIELD_KIND_I16: return value.value.i16;
    case AMQP_FIELD_KIND_U16: return value.value.u16;
    case AMQP_FIELD_KIND_I32: return value.value.i32;
    case AMQP_FIELD_KIND_U32: return value.value.u32;
    case AMQP_FIELD_KIND_I64: return value.value.i64;
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP:
      return static_cast<std::int64_t>(
          std::min<std::uint64_t>(value.value.u64, std::numeric_limits<std::int64_t>::max()));
    default: return std::nullopt;
  }
}

std::optional<std::string> text_in(const amqp_field_value_t& value) {
  if (value.kind == AMQP_FIELD_KIND_UTF8 || value.kind == AMQP_FIELD_KIND_BYTES) {
    return std::string(view_of(value.value.bytes));
  }
  if (value.kind == AMQP_FIELD_KIND_BOOLEAN) return value.value.boolean != 0 ? "true" : "false";
  if (const auto number = number_in(value)) return std::to_string(*number);
  return std::nullopt;  // tables, lists, floats: no publisher of Baton's sends them
}

const amqp_field_value_t* find(const amqp_table_t& table, std::string_view key) {
  for (int i = 0; i < table.num_entries; ++i) {
    if (view_of(table.entries[i].key) == key) return &table.entries[i].value;
  }
  return nullptr;
}

// Whether RabbitMQ adds this header to messages that it gives up on.
bool is_of_dead_letters(std::string_view name) {
  return name == "x-death" || name.starts_with("x-first-death-") ||
         name.starts_with("x-last-death-");
}

}  // namespace

void Incoming::begin(const amqp_bytes_t& exchange, const amqp_bytes_t& routing_key) {
  stage_ = Stage::header;
  delivery_ = {};
  delivery_.message.content_type.clear();
  delivery_.message.exchange = view_of(exchange);
  delivery_.message.routing_key = view_of(routing_key);
}

void Incoming::begin(const amqp_basic_deliver_t& deliver) {
  begin(deliver.exchange, deliver.routing_key);
  delivery_.tag = deliver.delivery_tag;
  // Of a queue that counts deliveries its header says more.
  delivery_.delivery_count = deliver.redelivered != 0 ? 1 : 0;
}

void Incoming::begin(const amqp_basic_return_t& returned) {
  begin(returned.exchange, returned.routing_key);
  reply_text_ = view_of(returned.reply_text);
}

// The last of the list is the first death: that of the queue that the message was published to.
void Incoming::take_death(const amqp_field_value_t& deaths) {
  if (deaths.kind != AMQP_FIELD_KIND_ARRAY || deaths.value.array.num_entries == 0) return;
  const auto& death = deaths.value.array.entries[deaths.value.array.num_entries - 1];
  if (death.kind != AMQP_FIELD_KIND_TABLE) return;
  if (const auto* exchange = find(death.value.table, "exchange")) {
    delivery_.message.exchange = text_in(*exchange).value_or("");
  }
  const auto* keys = find(death.value.table, "routing-keys");
  if (keys == nullptr || keys->kind != AMQP_FIELD_KIND_ARRAY) return;
  if (keys->value.array.num_entries == 0) return;
  delivery_.message.routing_key = text_in(keys->value.array.entries[0]).value_or("");
}

void Incoming::take_headers(const amqp_table_t& headers) {
  for (int i = 0; i < headers.num_entries; ++i) {
    const auto& [key, value] = headers.entries[i];
    const std::string_view name = view_of(key);
    if (name == "x-delivery-count") {
      const std::int64_t count = number_in(value).value_or(0);
      delivery_.delivery_count = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(count, 0, std::numeric_limits<std::uint32_t>::max()));
    } else if (name == "x-death") {
      take_death(value);
    } else if (!is_of_dead_letters(name)) {
      if (auto text = text_in(value)) {
        delivery_.message.headers.emplace(std::string(name), std::move(*text));
      }
    }
  }
}

bool Incoming::add(const amqp_frame_t& frame) {
  if (stage_ == Stage::header && frame.frame_type == AMQP_FRAME_HEADER) {
    const auto* properties =
        static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
    const auto has = [&](amqp_flags_t flag) { return (properties->_flags & flag) != 0; };
    Message& message = delivery_.message;
    if (has(AMQP_BASIC_CONTENT_TYPE_FLAG)) message.content_type = view_of(properties->content_type);
    if (has(AMQP_BASIC_MESSAGE_ID_FLAG)) message.id = view_of(properties->message_id);
    if (has(AMQP_BASIC_HEADERS_FLAG)) take_headers(properties->headers);
    body_left_ = frame.payload.properties.body_size;
    message.body.reserve(std::min<std::uint64_t>(body_left_, kMaxMessageBody + 1));
    stage_ = body_left_ == 0 ? Stage::whole : Stage::body;
    return true;
  }
  if (stage_ != Stage::body || frame.frame_type != AMQP_FRAME_BODY) return false;
  const std::string_view part = view_of(frame.payload.body_fragment);
  if (part.size() > body_left_) return false;
  std::string& body = delivery_.message.body;
  body.append(part.substr(0, kMaxMessageBody + 1 - std::min(body.size(), kMaxMessageBody + 1)));
  body_left_ -= part.size();
  if (body_left_ == 0) stage_ = Stage::whole;
  return true;
}

}  // namespace baton::broker::rabbitmq
