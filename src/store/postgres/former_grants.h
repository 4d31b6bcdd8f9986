#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/store.h"

namespace baton::store::postgres {

// The last plain grants that were given over one session: the token of each, and on which terms. In
// a row whose token is still that one nobody else has been since, and it says those terms.
// A wrong guess costs a round trip, so that the more often it was wrong for a name the longer it is
// not tried. Not thread-safe.
class FormerGrants {
 public:
  // The token of the last grant of the acquire's name, if that was on its terms and is worth a try.
  [[nodiscard]] std::optional<Token> guess(const Request& acquire);

  // The acquire was granted, by such a guess or not.
  void granted(const Request& acquire, Token token, bool guessed);

  // The guess was wrong.
  void was_wrong(const Request& acquire);

  // So many names have a place; one more on a shelf that is full costs the oldest of it.
  static constexpr std::size_t kShelves = 1024;
  static constexpr std::size_t kPlaces = 4;

 private:
  // Everything that a plain acquire says of its holder.
  struct Terms {
    Mode mode = Mode::X;
    Millis ttl{0};
    Millis at_least_for{0};
    std::string predicate;
    std::string owner;
    std::string channel;
    Metadata metadata;
    [[nodiscard]] bool are_of(const Request& acquire) const;
  };
  struct Place {
    Token token = 0;
    std::uint64_t terms = 0;    // their number
    std::uint32_t mark = 0;     // of the name; 0 is an empty place
    std::uint8_t mistakes = 0;  // of late
    std::uint8_t pause = 0;     // so many acquires are not guessed
  };
  using Shelf = std::array<Place, kPlaces>;

  [[nodiscard]] Place* find(const std::string& key);
  [[nodiscard]] std::uint64_t number_of(const Request& acquire);

  std::vector<Shelf> shelves_;    // none before the first grant
  std::array<Terms, 4> terms_{};  // by the end of their number; most processes have one
  std::uint64_t newest_ = 0;
};

}  // namespace baton::store::postgres
