#pragma once

// The output of a command: text for people or one JSON document for programs, results on stdout,
// errors and progress on stderr.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::cli {

enum class Style : std::uint8_t { plain, bold, dim, red, yellow };

// For a terminal: control characters could move its cursor or change its title; those that set the
// direction of text, or cannot be seen, could make one name look like another. They are shown as
// \u202e, and a byte that is not UTF-8 as \xff.
[[nodiscard]] std::string printable(std::string_view text);

// About how long, for people: 850ms, 28s, 2m10s, 3h05m, 2d4h.
[[nodiscard]] std::string about(Millis time);

// "1 holder", "2 holders".
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view noun);

class Output {
 public:
  explicit Output(bool json);

  [[nodiscard]] bool json() const { return json_; }

  // Whether progress is a line that replaces itself.
  [[nodiscard]] bool on_terminal() const { return err_terminal_ && !json_ && !quiet_; }

  // No hints and no progress from now on; errors and warnings are shown all the same.
  void be_quiet() { quiet_ = true; }
  [[nodiscard]] bool quiet() const { return quiet_; }

  // To stdout, with a newline.
  void line(const std::string& text) const;

  // What an install command ends with: `thing`, as "the outbox", is in the database now.
  void installed(std::string_view thing, const std::string& database) const;

  // Columns as wide as their widest cell; on a terminal that is narrower, the widest cells are cut.
  // The cells may come from anywhere: they are made printable. `whole` is a column that is never
  // cut, because people copy what is in it.
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows,
             std::optional<std::size_t> whole = {}) const;

  // Of the terminal that stdout is; nothing if it is none, or one that cannot be drawn on.
  struct Size {
    std::size_t rows;
    std::size_t columns;
  };
  [[nodiscard]] std::optional<Size> terminal() const;

  // What `table` would need.
  [[nodiscard]] static std::size_t table_width(const std::vector<std::string>& header,
                                               const std::vector<std::vector<std::string>>& rows);

  // To stderr: "baton: …" on one line, or {"error": …}.
  void error(const Error& error) const;
  void error(std::string_view code, std::string_view message, bool retryable = false) const;

  // To stderr, for people: at a terminal only, unless it goes `everywhere`.
  void hint(std::string_view message, bool everywhere = false) const;

  // To stderr, in text only.
  void warning(std::string_view message) const;

  // To stderr, a line a time: what has happened, as "baton: …" or as `json`.
  void event(std::string_view message, const std::string& json) const;

  // A line on stderr that the next one replaces, if that is a terminal that can; else every line
  // that differs from the one before it.
  void progress(const std::string& text);
  void end_progress();

  [[nodiscard]] std::string styled(std::string_view text, Style style) const;

 private:
  [[nodiscard]] std::string paint(std::string_view text, Style style, bool colours) const;

  bool json_;
  bool quiet_ = false;
  bool out_terminal_;
  bool out_colours_;
  bool err_colours_;
  bool err_terminal_;
  std::string last_progress_;
};

}  // namespace baton::cli
