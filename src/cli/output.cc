#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "cli/json_writer.h"

namespace baton::cli {
namespace {

// A dumb terminal shows escape sequences as they are.
bool is_clever_terminal(int file) {
  const char* terminal = std::getenv("TERM");
  return isatty(file) == 1 && !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

// https://no-color.org: any value but an empty one.
bool wants_colours(int file) {
  const char* no = std::getenv("NO_COLOR");
  return is_clever_terminal(file) && (no == nullptr || *no == '\0');
}

// Characters, not bytes. Wide ones count as one: names are rarely Chinese, and a table that is one
// column off is still a table.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are controls too.
    const bool second_set =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (second_set) ++i;
    if (byte < 0x20 || byte == 0x7F || second_set) {
      out += '?';
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string about(Millis time) {
  const auto ms = std::max<std::int64_t>(0, time.count());
  const auto seconds = ms / 1000;
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{}h", seconds / 86'400, seconds / 3600 % 24);
}

Output::Output(bool json)
    : json_(json),
      out_colours_(wants_colours(STDOUT_FILENO)),
      err_colours_(wants_colours(STDERR_FILENO)),
      err_terminal_(is_clever_terminal(STDERR_FILENO)) {}

std::string Output::paint(std::string_view text, Style style, bool colours) const {
  if (!colours || json_ || style == Style::plain) return std::string(text);
  const char* code = "0";
  switch (style) {
    case Style::plain: break;
    case Style::bold: code = "1"; break;
    case Style::dim: code = "2"; break;
    case Style::red: code = "31"; break;
    case Style::yellow: code = "33"; break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string Output::styled(std::string_view text, Style style) const {
  return paint(text, style, out_colours_);
}

void Output::line(const std::string& text) const { fmt::print("{}\n", text); }

void Output::table(const std::vector<std::string>& header,
                   const std::vector<std::vector<std::string>>& rows) const {
  std::vector<std::size_t> widths;
  for (const auto& cell : header) widths.push_back(width(cell));
  std::vector<std::vector<std::string>> shown = rows;
  for (auto& row : shown) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  }
  const auto print = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - width(row[i]) + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  if (const std::string titles = print(header); !titles.empty()) line(styled(titles, Style::bold));
  for (const auto& row : shown) line(print(row));
}

void Output::error(const Error& error) const {
  this->error(to_string(error.code), error.message, error.retryable);
}

void Output::error(std::string_view code, std::string_view message, bool retryable) const {
  std::fflush(stdout);
  if (json_) {
    JsonWriter json;
    json.begin_object().key("error").begin_object();
    json.field("code", code).field("message", printable(message)).field("retryable", retryable);
    json.end_object().end_object();
    fmt::print(stderr, "{}\n", json.text());
    return;
  }
  fmt::print(stderr, "{} {}\n", paint("baton:", Style::red, err_colours_), printable(message));
}

void Output::warning(std::string_view message) const {
  if (json_) return;
  std::fflush(stdout);
  fmt::print(stderr, "{} {}\n", paint("baton: warning:", Style::yellow, err_colours_),
             printable(message));
}

void Output::event(std::string_view message, const std::string& json) const {
  std::fflush(stdout);
  if (json_) {
    fmt::print(stderr, "{}\n", json);
  } else {
    fmt::print(stderr, "{} {}\n", paint("baton:", Style::dim, err_colours_), printable(message));
  }
}

void Output::progress(const std::string& text) {
  if (json_ || text == last_progress_) return;
  last_progress_ = text;
  std::fflush(stdout);
  if (err_terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", printable(text));
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "{}\n", printable(text));
  }
}

void Output::end_progress() {
  if (!json_ && err_terminal_ && !last_progress_.empty()) fmt::print(stderr, "\r\x1b[K");
  last_progress_.clear();
}

}  // namespace baton::cli
