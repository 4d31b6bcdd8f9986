#pragma once

// The manual pages of a program, from the same descriptions as its help.

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace baton::command_line {

struct ManualEntry {
  std::string term;
  std::string text;
};

// What help has no room for, such as "ENVIRONMENT".
struct ManualSection {
  std::string heading;
  std::vector<ManualEntry> entries;
};

// One page for the program and one for each of its commands, one behind the other: each begins with
// a line `.TH`. Paragraphs of a footer that begin with "Exit" become EXIT STATUS, its indented
// lines EXAMPLES, the others DESCRIPTION.
[[nodiscard]] std::string manual_pages(const CLI::App& program,
                                       const std::vector<ManualSection>& sections);

// That of one of its commands; empty if it has none of this name.
[[nodiscard]] std::string manual_page(const CLI::App& program, const std::string& command,
                                      const std::vector<ManualSection>& sections);

}  // namespace baton::command_line
