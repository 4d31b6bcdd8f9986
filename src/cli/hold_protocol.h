#pragma once

// The lines that `baton hold` and the program that has started it write to each other: the program
// a word or a JSON object, `baton hold` a JSON object. Pure; docs/hold.md is the manual.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/fence_token.h"
#include "baton/store.h"

namespace baton::cli {

inline constexpr std::size_t kMaxHoldLine = std::size_t{64} << 10;  // bytes, without the newline

struct HoldOrder {
  enum class Verb : std::uint8_t { release, note, status };
  Verb verb = Verb::status;
  NoteChange note = {};  // of a release: the last words
};

// A word, or a JSON object. Errors are bad_request, and quote no more than the beginning of a line.
[[nodiscard]] Result<HoldOrder> parse_hold_order(std::string_view line);

// Cuts what is read into lines. Keeps at most kMaxHoldLine bytes and what add() was given last.
class HoldLines {
 public:
  void add(std::string_view bytes);

  // The next line without its end, nothing if none is complete. A line that is too long is an
  // error, once, and is skipped to its end. Empty lines are left out.
  std::optional<Result<std::string>> next();

 private:
  std::string bytes_;
  bool skipping_ = false;  // the rest of a line that was too long
};

// Until when a lease is trusted if no renewal comes through any more.
struct HoldTrust {
  Instant now;
  Instant until;
};

struct HoldGrant {
  std::vector<std::string> names;  // paths, as they were asked for
  std::string key;
  Mode mode = Mode::X;
  Token token = 0;
  std::string grant;
  Millis ttl{0};
  Note note;
  std::vector<FenceToken> tokens;
};

// Each with its newline. "event" is the first field, and "fence" the last one of granted_line: a
// shell can do without a JSON parser.
[[nodiscard]] std::string waiting_line(const std::vector<std::string>& names);
[[nodiscard]] std::string granted_line(const HoldGrant& grant, const HoldTrust& trust);
[[nodiscard]] std::string renewed_line(const HoldTrust& trust);
[[nodiscard]] std::string noted_line(const Note& note);
[[nodiscard]] std::string status_line(bool held, const HoldTrust& trust);
// `over_in`: nobody else gets the lock before that.
[[nodiscard]] std::string lost_line(std::string_view reason, Millis over_in);
[[nodiscard]] std::string released_line(std::string_view reason);
// `final`: nothing follows but the end of the process.
[[nodiscard]] std::string error_line(const Error& error, bool final);

}  // namespace baton::cli
