#include "cli/output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <numeric>

#include <fmt/core.h>

#include "baton/locks.h"
#include "cli/json_writer.h"
#include "core/utf8.h"

namespace baton::cli {
namespace {

// A full disk, or a pipe that nobody reads, must not keep baton from ending a command in time. So
// writing to stderr fails silently, and waits for a reader for a moment only.
void write_error_text(std::string_view text) {
  constexpr int kPatience = 200;            // ms, for each piece
  constexpr std::size_t kPiece = PIPE_BUF;  // a pipe that is writable has room for so much
  static std::mutex one_line_a_time;
  const std::lock_guard lock(one_line_a_time);
  while (!text.empty()) {
    pollfd file{STDERR_FILENO, POLLOUT, 0};
    const int ready = poll(&file, 1, kPatience);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (file.revents & (POLLERR | POLLNVAL)) != 0) return;
    const auto written = write(STDERR_FILENO, text.data(), std::min(text.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

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

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Control characters, and what Unicode calls format characters: they have no shape of their own,
// but change the order in which their neighbours are shown.
constexpr Range kHidden[] = {{0x0000, 0x001F}, {0x007F, 0x009F},  {0x00AD, 0x00AD},
                             {0x061C, 0x061C}, {0x180E, 0x180E},  {0x200B, 0x200F},
                             {0x2028, 0x202E}, {0x2060, 0x206F},  {0xFEFF, 0xFEFF},
                             {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};

bool is_hidden(std::uint32_t point) {
  return std::any_of(std::begin(kHidden), std::end(kHidden), [point](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

// One that does not tell its size is taken for the smallest that is common.
Output::Size size_of_terminal(int file) {
  winsize size{};
  const bool told = ioctl(file, TIOCGWINSZ, &size) == 0;
  return {.rows = told && size.ws_row > 1 ? size.ws_row : 24U,
          .columns = told && size.ws_col > 1 ? size.ws_col : 80U};
}

// A line that wraps could not be replaced by the next one.
std::string first_columns(const std::string& text, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80;
    if (begins && ++shown > most) break;
  }
  return text.substr(0, end);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const auto point = core::next_code_point(text, i);
    if (!point) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i++]));
    } else if (is_hidden(*point)) {
      out += fmt::format("\\u{:04x}", *point);
    } else {
      out += text.substr(begin, i - begin);
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

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

Output::Output(bool json)
    : json_(json),
      out_terminal_(is_clever_terminal(STDOUT_FILENO)),
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

void Output::installed(std::string_view thing, const std::string& database) const {
  if (!json_) return line(printable(fmt::format("{} is in {}", thing, redact_url(database))));
  JsonWriter json;
  json.begin_object().field("installed", true).end_object();
  line(json.text());
}

namespace {

constexpr std::size_t kBetweenColumns = 2;

std::vector<std::size_t> widths_of(const std::vector<std::string>& header,
                                   const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& cell : header) widths.push_back(width(cell));
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width(printable(row[i])));
    }
  }
  return widths;
}

std::size_t sum_of(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kBetweenColumns * (widths.size() - 1));
}

// Takes from the widest column first, never from `whole`.
void narrow(std::vector<std::size_t>& widths, std::size_t most, std::optional<std::size_t> whole) {
  std::vector<std::size_t*> shrinking;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (i != whole) shrinking.push_back(&widths[i]);
  }
  for (std::size_t all = sum_of(widths); all > most && !shrinking.empty(); --all) {
    auto& widest = **std::max_element(shrinking.begin(), shrinking.end(),
                                      [](const auto* a, const auto* b) { return *a < *b; });
    if (widest <= 4) return;
    --widest;
  }
}

std::string cut(const std::string& text, std::size_t most) {
  return width(text) <= most ? text : first_columns(text, most - 1) + "…";
}

}  // namespace

std::optional<Output::Size> Output::terminal() const {
  if (!out_terminal_ || json_) return std::nullopt;
  return size_of_terminal(STDOUT_FILENO);
}

std::size_t Output::table_width(const std::vector<std::string>& header,
                                const std::vector<std::vector<std::string>>& rows) {
  return sum_of(widths_of(header, rows));
}

void Output::table(const std::vector<std::string>& header,
                   const std::vector<std::vector<std::string>>& rows,
                   std::optional<std::size_t> whole) const {
  auto widths = widths_of(header, rows);
  if (const auto size = terminal()) narrow(widths, size->columns, whole);
  const auto print = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = cut(printable(row[i]), widths[i]);
      text += cell;
      if (i + 1 < row.size()) text.append(widths[i] - width(cell) + kBetweenColumns, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  if (const std::string titles = print(header); !titles.empty()) line(styled(titles, Style::bold));
  for (const auto& row : rows) line(print(row));
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
    write_error_text(json.text() + "\n");
    return;
  }
  write_error_text(
      fmt::format("{} {}\n", paint("baton:", Style::red, err_colours_), printable(message)));
}

void Output::hint(std::string_view message, bool everywhere) const {
  if (json_ || quiet_ || (!everywhere && isatty(STDERR_FILENO) != 1)) return;
  std::fflush(stdout);
  write_error_text(
      fmt::format("{} {}\n", paint("baton:", Style::dim, err_colours_), printable(message)));
}

void Output::warning(std::string_view message) const {
  if (json_) return;
  std::fflush(stdout);
  write_error_text(fmt::format("{} {}\n", paint("baton: warning:", Style::yellow, err_colours_),
                               printable(message)));
}

void Output::event(std::string_view message, const std::string& json) const {
  std::fflush(stdout);
  if (json_) {
    write_error_text(json + "\n");
  } else {
    write_error_text(
        fmt::format("{} {}\n", paint("baton:", Style::dim, err_colours_), printable(message)));
  }
}

void Output::progress(const std::string& text) {
  if (json_ || quiet_ || text == last_progress_) return;
  last_progress_ = text;
  std::fflush(stdout);
  if (err_terminal_) {
    write_error_text(fmt::format(
        "\r\x1b[K{}", cut(printable(text), size_of_terminal(STDERR_FILENO).columns - 1)));
  } else {
    write_error_text(printable(text) + "\n");
  }
}

void Output::end_progress() {
  if (!json_ && err_terminal_ && !last_progress_.empty()) write_error_text("\r\x1b[K");
  last_progress_.clear();
}

}  // namespace baton::cli
