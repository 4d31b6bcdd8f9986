#include "baton/grant_id.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <random>

#include "core/forks.h"

namespace baton {
namespace {

std::atomic<std::uint32_t> fork_count{0};

std::mt19937_64 seeded() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device()};
  return std::mt19937_64(seed);
}

}  // namespace

std::uint32_t core::forks() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  return fork_count.load(std::memory_order_relaxed);
}

std::string to_string(GrantId id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[15 - i] = kDigits[(id.high >> (4 * i)) & 15];
    text[31 - i] = kDigits[(id.low >> (4 * i)) & 15];
  }
  return text;
}

std::optional<GrantId> parse_grant_id(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return std::nullopt;
    }
    halves[i / 16] = halves[i / 16] << 4 | static_cast<std::uint64_t>(digit);
  }
  return GrantId{halves[0], halves[1]};
}

GrantId new_grant_id() {
  // A fork copies the state of the generator, and two processes that draw the same id would hold
  // the same grant: the child begins anew.
  thread_local std::mt19937_64 random = seeded();
  thread_local std::uint32_t seeded_after = core::forks();
  if (const auto now = core::forks(); now != seeded_after) {
    random = seeded();
    seeded_after = now;
  }
  GrantId id{random(), random()};
  if (id.empty()) id.low = 1;
  return id;
}

}  // namespace baton
