#include "event/event_id.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "baton/event.h"
#include "baton/grant_id.h"

namespace baton {
namespace event {

Tick tick_of(std::int64_t nanoseconds) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  nanoseconds = std::max<std::int64_t>(nanoseconds, 0);
  const auto whole = static_cast<Tick>(nanoseconds / kMillisecond);
  const auto rest = static_cast<Tick>(nanoseconds % kMillisecond);
  return whole << 12 | (rest << 12) / kMillisecond;
}

Tick next_tick(Tick last, Tick now) { return std::max(last + 1, now); }

std::string format_event_id(Tick tick, std::uint64_t random) {
  const std::uint64_t high = (tick >> 12) << 16 | 0x7000U | (tick & 0xfffU);
  const std::uint64_t low = (random & 0x3fff'ffff'ffff'ffffU) | 0x8000'0000'0000'0000U;
  const std::string digits = to_string(GrantId{high, low});
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += digits[i];
  }
  return text;
}

}  // namespace event

std::string make_event_id() {
  static std::atomic<event::Tick> latest{0};
  const auto since_1970 = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const event::Tick now = event::tick_of(since_1970.count());
  event::Tick last = latest.load(std::memory_order_relaxed);
  event::Tick next = event::next_tick(last, now);
  while (!latest.compare_exchange_weak(last, next, std::memory_order_relaxed)) {
    next = event::next_tick(last, now);
  }
  // A grant id is random, also in a child after a fork.
  return event::format_event_id(next, new_grant_id().low);
}

bool is_event_id(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
    } else if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
      return false;
    }
  }
  return true;
}

}  // namespace baton
