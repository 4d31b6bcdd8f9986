#pragma once

// How the words of a command line are understood, the same in every command.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "baton/locks.h"
#include "cli/settings.h"

namespace baton::cli {

struct NameArgument {
  LockName name;
  std::optional<Mode> mode;  // if the name was given in its text form, which has one
};

// subject[/resource…], or lock:{mode}:{subject}:{predicate}[:…]. The predicate and the region of
// the command line, if any, stand above those of the text.
[[nodiscard]] Result<NameArgument> parse_name(std::string_view text, const std::string& predicate,
                                              const std::string& region);

// Nothing for an empty text.
[[nodiscard]] Result<std::optional<Mode>> parse_mode_argument(std::string_view text);

// Errors name the option.
[[nodiscard]] Result<Millis> parse_duration_argument(std::string_view option,
                                                     std::string_view text);

// From `least` to `most`.
[[nodiscard]] Result<Millis> parse_duration_argument(std::string_view option, std::string_view text,
                                                     Millis least, Millis most);

// Nothing for an empty text.
[[nodiscard]] Result<std::optional<std::int64_t>> parse_number_argument(std::string_view option,
                                                                        std::string_view text);

[[nodiscard]] Error bad_request(std::string message);

}  // namespace baton::cli
