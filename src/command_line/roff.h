#pragma once

// A page of a manual, as man reads it.

#include <string>
#include <string_view>

namespace baton::command_line {

class Roff {
 public:
  // As in `.TH`: the title is upper case, `source` is the program with its version.
  Roff(std::string_view title, std::string_view source, std::string_view manual);

  // Text is plain: what roff would read as a request or an escape is printed instead.
  Roff& section(std::string_view heading);
  Roff& subsection(std::string_view heading);
  Roff& paragraph(std::string_view text);  // filled: its line breaks are spaces
  Roff& line(std::string_view bold, std::string_view rest);
  Roff& line_break();
  Roff& entry(std::string_view bold, std::string_view italic, std::string_view text);
  Roff& verbatim(std::string_view lines);
  Roff& reference(std::string_view page, std::string_view behind);  // page(1), and what follows

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace baton::command_line
