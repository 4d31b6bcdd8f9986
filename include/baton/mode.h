#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "baton/export.h"

namespace baton {

// How a lock is held. The intent modes (IS, IX) announce locks on something below the name; SIX is
// S and IX together; U reads now, may become X later, and tolerates readers until it does.
enum class Mode : std::uint8_t { IS, IX, S, U, SIX, X };

inline constexpr std::array<Mode, 6> kAllModes = {Mode::IS, Mode::IX,  Mode::S,
                                                  Mode::U,  Mode::SIX, Mode::X};
inline constexpr Mode kIntent = Mode::IX;
inline constexpr Mode kShared = Mode::S;
inline constexpr Mode kUpdate = Mode::U;
inline constexpr Mode kExclusive = Mode::X;

// False for a number that is none of kAllModes. Options and requests with such a mode are refused
// (bad_request, invalid). The functions below answer false, or "unknown", for it.
[[nodiscard]] BATON_EXPORT bool is_mode(Mode mode);

// May `asked` be granted beside `held`? Who came first does not matter.
[[nodiscard]] BATON_EXPORT bool compatible(Mode held, Mode asked);

// Does holding `held` include everything that holding `asked` would give?
[[nodiscard]] BATON_EXPORT bool covers(Mode held, Mode asked);

// The weakest mode that covers both: supremum(S, IX) is SIX.
[[nodiscard]] BATON_EXPORT Mode supremum(Mode a, Mode b);

// Where a holder of `held` that converts to `asked` ends up: down if it covers it, else up to the
// supremum.
[[nodiscard]] BATON_EXPORT Mode converted(Mode held, Mode asked);

// The mode that a lock on a child asks of each of its ancestors.
[[nodiscard]] BATON_EXPORT Mode ancestor_mode(Mode child);

// "IS", "IX", …; and the words people use: "exclusive", "shared", "update", "intent".
[[nodiscard]] BATON_EXPORT std::string_view short_name(Mode mode);
[[nodiscard]] BATON_EXPORT std::string_view long_name(Mode mode);

// Takes either spelling in any case; nothing for anything else.
[[nodiscard]] BATON_EXPORT std::optional<Mode> parse_mode(std::string_view text);

}  // namespace baton
