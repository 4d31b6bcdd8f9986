#include "command_line/roff.h"

#include <algorithm>
#include <array>
#include <utility>

namespace baton::command_line {
namespace {

// Minus signs stay such, so that an option can be copied from a page; and the page is plain ASCII,
// so that every terminal shows it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kEscapes = {{
    {"\\", "\\e"},
    {"-", "\\-"},
    {"'", "\\(aq"},
    {"`", "\\(ga"},
    {"^", "\\(ha"},
    {"~", "\\(ti"},
    {"\u2026", "..."},
    {"\"", "\\(dq"},
}};

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto* found = std::find_if(kEscapes.begin(), kEscapes.end(), [&](const auto& escape) {
      return text.starts_with(escape.first);
    });
    if (found != kEscapes.end()) {
      out += found->second;
      text.remove_prefix(found->first.size());
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

// A line that begins with a dot would be a request.
std::string text_line(std::string_view text) {
  const std::string line = escaped(text);
  return line.starts_with('.') ? "\\&" + line : line;
}

std::string filled(std::string_view text) {
  std::string out = text_line(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

}  // namespace

Roff::Roff(std::string_view title, std::string_view source, std::string_view manual) {
  // Left-aligned and without hyphens: words are options, names and URLs.
  text_ = ".TH \"" + escaped(title) + "\" 1 \"\" \"" + escaped(source) + "\" \"" + escaped(manual) +
          "\"\n.nr HY 0\n.ad l\n";
}

Roff& Roff::section(std::string_view heading) {
  text_ += ".SH \"" + escaped(heading) + "\"\n";
  return *this;
}

Roff& Roff::subsection(std::string_view heading) {
  text_ += ".SS \"" + escaped(heading) + "\"\n";
  return *this;
}

Roff& Roff::paragraph(std::string_view text) {
  text_ += ".PP\n" + filled(text) + "\n";
  return *this;
}

Roff& Roff::line(std::string_view bold, std::string_view rest) {
  text_ += "\\fB" + escaped(bold) + "\\fR" + (rest.empty() ? "" : " " + escaped(rest)) + "\n";
  return *this;
}

Roff& Roff::line_break() {
  text_ += ".br\n";
  return *this;
}

Roff& Roff::entry(std::string_view bold, std::string_view italic, std::string_view text) {
  text_ += ".TP\n\\fB" + escaped(bold) + "\\fR" +
           (italic.empty() ? "" : " \\fI" + escaped(italic) + "\\fR") + "\n" + filled(text) + "\n";
  return *this;
}

Roff& Roff::verbatim(std::string_view lines) {
  text_ += ".PP\n.RS 4\n.EX\n";
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    text_ += text_line(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  text_ += ".EE\n.RE\n";
  return *this;
}

Roff& Roff::reference(std::string_view page, std::string_view behind) {
  text_ += ".BR " + escaped(page) + " (1)" + escaped(behind) + "\n";
  return *this;
}

}  // namespace baton::command_line
