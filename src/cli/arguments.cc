#include "cli/arguments.h"

#include <array>
#include <charconv>

#include "policy/duration.h"
#include "policy/suggest.h"

namespace baton::cli {

Error bad_request(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

Result<NameArgument> parse_name(std::string_view text, const std::string& predicate,
                                const std::string& region) {
  NameArgument out;
  if (text.starts_with("lock:") || text.starts_with("lock@")) {
    auto parsed = parse_lock_text(text);
    if (!parsed) return parsed.error();
    out.name = std::move(parsed->first);
    out.mode = parsed->second;
  } else {
    auto parsed = parse_path(text);
    if (!parsed) return parsed.error();
    out.name = std::move(*parsed);
  }
  if (!predicate.empty()) out.name.predicate = predicate;
  if (!region.empty()) out.name.region = region;
  if (auto ok = validate(out.name); !ok) return ok.error();
  return out;
}

Result<std::optional<Mode>> parse_mode_argument(std::string_view text) {
  if (text.empty()) return std::optional<Mode>();
  if (const auto mode = parse_mode(text)) return mode;
  static constexpr std::array<std::string_view, 6> kWords = {"exclusive", "shared", "update",
                                                             "intent",    "IS",     "SIX"};
  return bad_request("--mode: " + policy::unknown_word("mode", text, kWords));
}

Result<Millis> parse_duration_argument(std::string_view option, std::string_view text) {
  auto time = policy::parse_duration(text);
  if (!time) return bad_request(std::string(option) + ": " + time.error().message);
  return time;
}

Result<Millis> parse_duration_argument(std::string_view option, std::string_view text, Millis least,
                                       Millis most) {
  auto time = parse_duration_argument(option, text);
  if (time && (*time < least || *time > most)) {
    return bad_request(std::string(option) + ": " + std::string(text) + " is out of range; from " +
                       policy::print_duration(least) + " to " + policy::print_duration(most));
  }
  return time;
}

Result<std::optional<std::int64_t>> parse_number_argument(std::string_view option,
                                                          std::string_view text) {
  if (text.empty()) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size()) return std::optional(number);
  return bad_request(std::string(option) + ": '" + std::string(text) +
                     "' is not a whole number of 64 bits");
}

}  // namespace baton::cli
