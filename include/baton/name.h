#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/export.h"
#include "baton/mode.h"
#include "baton/result.h"

namespace baton {

inline constexpr std::string_view kDefaultRegion = "DEFAULT";
inline constexpr std::string_view kDefaultPredicate = "holding";
inline constexpr std::string_view kReservedRegion = "BATON";  // Baton's own names; not for users
inline constexpr std::size_t kMaxNameBytes = 255;

// What is locked: `subject` (what), `resources` (which ones, a path), in a `region`. Two requests
// can conflict only if these three are equal. `predicate` (which action) describes the holder,
// unless the schema declares the subject `scope: predicate`.
struct LockName {
  std::string subject;
  std::string predicate = std::string(kDefaultPredicate);
  std::vector<std::string> resources = {};
  std::string region = std::string(kDefaultRegion);

  auto operator<=>(const LockName&) const = default;
};

// Valid UTF-8, no control characters, no empty part, at most kMaxNameBytes in all counting one
// separator a part. Anything else is bad_name, never truncated.
[[nodiscard]] BATON_EXPORT Result<void> validate(const LockName& name);

// lock:{mode}:{subject}:{predicate}:{r1}:{r2}… or lock@{region}:… outside the default region, with
// %XX for ':', '%', '*' and controls inside a part. print and parse round-trip.
[[nodiscard]] BATON_EXPORT std::string print(const LockName& name, Mode mode);
[[nodiscard]] BATON_EXPORT Result<std::pair<LockName, Mode>> parse_lock_text(std::string_view text);

// subject[/resource…] as typed on a command line; %2F stands for a '/' inside a part.
[[nodiscard]] BATON_EXPORT Result<LockName> parse_path(std::string_view text);
[[nodiscard]] BATON_EXPORT std::string print_path(const LockName& name);

// What stores file a name under: region:subject:r1:r2…, and ::predicate behind it when the
// predicate is part of the identity. Everything that can conflict has one key.
[[nodiscard]] BATON_EXPORT std::string key_of(const LockName& name, bool predicate_scoped = false);

// The name behind a key. Its predicate is empty unless the key carries one.
[[nodiscard]] BATON_EXPORT Result<LockName> parse_key(std::string_view key);

// One part as it stands inside a key or text form.
[[nodiscard]] BATON_EXPORT std::string escape_part(std::string_view part);

[[nodiscard]] BATON_EXPORT bool is_valid_utf8_text(std::string_view text);

}  // namespace baton
