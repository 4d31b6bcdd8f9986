#pragma once

// One state of a small world: a store, two or three clients, and the messages between them. Plain
// bytes, so that millions of them can be hashed and compared. Times are ticks relative to now and
// tokens are ranks: two states that differ only by when they happen, or by how many grants came
// before, are the same state, and the number of states stays finite.

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "baton/store.h"
#include "core/lock_table.h"

namespace baton::explore {

inline constexpr std::size_t kMaxClients = 3;
inline constexpr std::size_t kMaxNames = 2;
inline constexpr Millis kTick{250};

// A vector without memory of its own. Unused slots stay zero, so equal lists have equal bytes.
template <typename T, std::size_t N>
class FixedList {
 public:
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }

  void push_back(const T& item) {
    if (size_ == N) throw std::length_error("a world is too small for its configuration");
    items_[size_++] = item;
  }
  void erase(std::size_t at) {
    for (std::size_t i = at + 1; i < size_; ++i) items_[i - 1] = items_[i];
    items_[--size_] = T{};
  }
  void clear() { *this = {}; }

  template <typename Predicate>
  void erase_if(Predicate predicate) {
    for (std::size_t i = size_; i-- > 0;) {
      if (predicate(items_[i])) erase(i);
    }
  }

 private:
  std::array<T, N> items_{};
  std::uint8_t size_ = 0;
};

// A grant is the n-th acquisition of a client, in one byte.
using Grant = std::uint8_t;
constexpr Grant grant_of(std::size_t client, std::size_t number) {
  return static_cast<Grant>(client * 8 + number);
}
constexpr std::size_t client_of(Grant grant) { return grant / 8U; }

struct HolderCell {
  Grant grant = 0;
  Mode mode = Mode::IS;
  core::HolderState state = core::HolderState::held;
  std::uint8_t token = 0;
  std::int8_t left = 0;  // ticks until it expires; 0: expired, and not yet swept away
};

struct WaiterCell {
  Grant grant = 0;
  Mode mode = Mode::IS;
  std::uint8_t turn = 0;
  std::int8_t left = 0;
  bool alone = false;
  bool converting = false;
};

struct TombstoneCell {
  Grant grant = 0;
  std::int8_t left = 0;
};

struct NameCell {
  FixedList<HolderCell, 12> holders;
  FixedList<WaiterCell, 12> waiters;
  FixedList<TombstoneCell, 12> tombstones;
  std::uint8_t top = 0;  // the highest token ever granted: no store knows it, the checks do
};

// A request on its way. It takes effect while `life` is above zero or not at all, as every store
// promises by its apply limit.
struct MessageCell {
  Grant grant = 0;
  Verb verb = Verb::get;
  std::uint8_t order = 0;
  std::int8_t life = 0;
  std::int8_t sent = 0;     // by the client's clock, in ticks from now: zero or below
  bool current = false;     // its client still waits for the reply
  bool duplicated = false;  // it has been delivered once already
  bool converting = false;  // cancel: only the conversion
};

//   idle → asking → holding ⇄ renewing, converting, unconverting → releasing → idle
//            ↓↑       ↑                     from anywhere: crash → idle
//          queued ⇄ claiming                before holding: give up → cancelling → idle
enum class Phase : std::uint8_t {
  idle,
  asking,
  queued,
  claiming,
  holding,
  renewing,
  converting,
  unconverting,
  releasing,
  cancelling,
};

struct ReplyCell {
  bool there = false;
  Outcome outcome = Outcome::granted;
  std::array<std::uint8_t, kMaxNames> tokens{};
  std::int8_t sent = 0;
};

struct ClientCell {
  Phase phase = Phase::idle;
  std::uint8_t begun = 0;  // acquisitions so far, this one included
  std::uint8_t order = 0;
  bool converted = false;  // believes to have X
  std::array<std::uint8_t, kMaxNames> tokens{};
  std::int8_t trust = 0;    // ticks of its own clock for which it believes in its lease
  std::uint8_t steady = 0;  // ticks since its clock last missed or gained one
  ReplyCell reply;
};

struct World {
  std::array<NameCell, kMaxNames> names{};
  std::array<ClientCell, kMaxClients> clients{};
  FixedList<MessageCell, 9> messages;
  FixedList<Grant, 12> cancelled;  // the store has done so, and messages of theirs are on the way
  std::uint8_t last = 0;           // the store's counter, as a rank
  std::uint8_t faults = 0;         // so far, where their number is bounded
};
static_assert(std::is_trivially_copyable_v<World>);
static_assert(std::has_unique_object_representations_v<World>, "hashed as bytes: no padding");

// What a client may ask for: one or two names, waiting or not.
struct Order {
  std::vector<Target> targets;
  bool wait = false;
};

inline constexpr std::size_t kAny = ~std::size_t{0};

struct Setting {
  std::string title;
  std::size_t clients = 2;
  std::vector<std::string> names = {"DEFAULT:a"};
  std::vector<Order> orders;
  std::size_t acquisitions = 2;  // of each client
  std::size_t in_flight = 2;     // requests of one client at a time
  std::size_t faults = kAny;     // crashes, losses and duplicates in one run, all together
  int ttl = 4;                   // this and the rest in ticks
  int queue_ttl = 2;
  int claim_within = 1;
  int life = 2;        // of a request; and of a tombstone, which must outlive it
  int slip_every = 0;  // a clock misses or gains at most one of so many ticks; 0: none
  bool may_convert = false;
  std::size_t max_states = 10'000'000;
  std::size_t live_every = 1;  // run the fair schedule from one in so many states

  [[nodiscard]] Millis ttl_time() const { return ttl * kTick; }
};

[[nodiscard]] inline std::size_t name_index(const Setting& setting, const std::string& key) {
  return key == setting.names[0] ? 0 : 1;
}

// Forgets what no longer matters and makes tokens and turns as small as their order allows.
void normalise(World& world);

// The same for a world and for every renaming of its clients, which are all alike.
[[nodiscard]] std::uint64_t fingerprint(const World& world);

[[nodiscard]] std::string to_string(Phase phase);
[[nodiscard]] std::string grant_text(Grant grant);
[[nodiscard]] std::string describe(const World& world, const Setting& setting);

}  // namespace baton::explore
