#include "event/message_headers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "core/bad_request.h"
#include "event/context.h"

namespace baton::event {
namespace {

constexpr std::array kNames{header::type,         header::aggregate,   header::aggregate_type,
                            header::version,      header::traceparent, header::correlation_id,
                            header::causation_id, header::occurred_at, header::lane,
                            header::position};

bool is_ours(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string text_of(const Message& message, std::string_view name) {
  const auto found = message.headers.find(std::string(name));
  return found == message.headers.end() ? std::string() : found->second;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// 0 without the header.
Result<std::int64_t> number_of(const Message& message, std::string_view name, std::int64_t most) {
  const std::string text = text_of(message, name);
  if (text.empty()) return std::int64_t{0};
  const auto number = number_in<std::int64_t>(text);
  if (!number || *number < 0 || *number > most) {
    return bad_request("the header " + std::string(name) + " is not a number of an event");
  }
  return *number;
}

}  // namespace

std::string print_time(WallTime time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss<milliseconds> clock(time - day);
  std::string text = "0000-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t end, std::size_t digits, long number) {
    for (; digits > 0; --digits, number /= 10) text[--end] = static_cast<char>('0' + number % 10);
  };
  put(4, 4, int(date.year()));
  put(7, 2, unsigned(date.month()));
  put(10, 2, unsigned(date.day()));
  put(13, 2, clock.hours().count());
  put(16, 2, clock.minutes().count());
  put(19, 2, clock.seconds().count());
  put(23, 3, clock.subseconds().count());
  return text;
}

Result<WallTime> parse_time(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddZ";
  const auto fits = [](char shape, char c) {
    return shape == 'd' ? c >= '0' && c <= '9' : c == shape;
  };
  if (text.size() != kShape.size() ||
      !std::equal(kShape.begin(), kShape.end(), text.begin(), fits)) {
    return bad_request("a time is written as 2026-11-18T20:14:03.271Z");
  }
  const auto part = [&](std::size_t at, std::size_t size) {
    return number_in<int>(text.substr(at, size)).value_or(0);
  };
  const year_month_day date(year(part(0, 4)), month(static_cast<unsigned>(part(5, 2))),
                            day(static_cast<unsigned>(part(8, 2))));
  if (!date.ok() || part(11, 2) > 23 || part(14, 2) > 59 || part(17, 2) > 60) {
    return bad_request("there is no such time");
  }
  return WallTime(sys_days(date) + hours(part(11, 2)) + minutes(part(14, 2)) +
                  seconds(part(17, 2)) + milliseconds(part(20, 3)));
}

Message to_message(SentEvent sent) {
  Message message;
  write_message(std::move(sent), message);
  return message;
}

void write_message(SentEvent sent, Message& message) {
  Event& event = sent.event;
  message.exchange = std::move(event.exchange);
  message.routing_key = std::move(event.routing_key);
  message.id = std::move(event.id);
  message.body = std::move(event.payload);
  auto spare = std::exchange(message.headers, std::move(event.headers));
  std::erase_if(message.headers, [](const auto& entry) { return is_ours(entry.first); });
  // In the order of their names, so that each goes behind those before it.
  const auto set = [&](std::string_view name, std::string value) {
    auto& headers = message.headers;
    if (value.empty()) return;
    if (spare.empty()) {
      headers.emplace_hint(headers.end(), std::string(name), std::move(value));
      return;
    }
    auto header = spare.extract(spare.begin());
    header.key() = name;
    header.mapped() = std::move(value);
    headers.insert(headers.end(), std::move(header));
  };
  set(header::aggregate, std::move(event.aggregate));
  set(header::aggregate_type, std::move(event.aggregate_type));
  set(header::causation_id, std::move(event.causation_id));
  set(header::correlation_id, std::move(event.correlation_id));
  set(header::occurred_at, print_time(sent.occurred_at));
  set(header::traceparent, std::move(event.traceparent));
  set(header::type, std::move(event.type));
  set(header::version, std::to_string(event.version));
  set(header::lane, std::to_string(sent.lane));
  set(header::position, std::to_string(sent.position));
}

Result<SentEvent> from_message(const Message& message) {
  if (!is_event_id(message.id)) {
    return bad_request("the message has no id that is a UUID in lower case");
  }
  const auto lane = number_of(message, header::lane, std::numeric_limits<std::int16_t>::max());
  if (!lane) return lane.error();
  const auto position =
      number_of(message, header::position, std::numeric_limits<std::int64_t>::max());
  if (!position) return position.error();
  const auto version =
      number_of(message, header::version, std::numeric_limits<std::int32_t>::max());
  if (!version) return version.error();
  SentEvent sent{
      .event = {.id = message.id,
                .type = text_of(message, header::type),
                .aggregate = text_of(message, header::aggregate),
                .aggregate_type = text_of(message, header::aggregate_type),
                .exchange = message.exchange,
                .routing_key = message.routing_key,
                .payload = message.body,
                .traceparent = usable_traceparent(text_of(message, header::traceparent))},
      .lane = static_cast<int>(*lane),
      .position = *position};
  Event& event = sent.event;
  if (const auto id = text_of(message, header::correlation_id); is_context_id(id)) {
    event.correlation_id = id;
  }
  if (const auto id = text_of(message, header::causation_id); is_context_id(id)) {
    event.causation_id = id;
  }
  if (!text_of(message, header::version).empty()) {
    event.version = static_cast<std::int32_t>(*version);
  }
  if (const auto text = text_of(message, header::occurred_at); !text.empty()) {
    const auto time = parse_time(text);
    if (!time) return time.error();
    sent.occurred_at = *time;
  }
  event.headers = message.headers;
  std::erase_if(event.headers, [](const auto& entry) { return is_ours(entry.first); });
  if (auto ok = check_event(event); !ok) return ok.error();
  return sent;
}

}  // namespace baton::event
