#include "command_line/manual.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include <CLI/CLI.hpp>

#include "baton/version.h"
#include "command_line/roff.h"

namespace baton::command_line {
namespace {

constexpr std::string_view kCommonOptions = "Common options";

struct Footer {
  std::string examples;
  std::vector<std::string> description;
  std::vector<std::string> exit_status;
};

Footer read_footer(std::string_view text) {
  Footer footer;
  std::vector<std::string>* within = nullptr;  // a paragraph that goes on
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line == "Examples:" || line == "Example:") {
      within = nullptr;
    } else if (line.starts_with("  ")) {
      footer.examples += line.substr(2) + "\n";
      within = nullptr;
    } else if (line.starts_with("Exit")) {
      within = &footer.exit_status;
      constexpr std::string_view kLabel = "Exit code: ";
      within->push_back(line.starts_with(kLabel) ? line.substr(kLabel.size()) : line);
    } else if (within != nullptr) {
      within->back() += " " + line;
    } else {
      within = &footer.description;
      within->push_back(line);
    }
  }
  return footer;
}

std::string sentence(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.ends_with('.') || text.ends_with('?') ? text : text + ".";
}

// For the line that apropos shows.
std::string in_brief(std::string text) {
  text = text.substr(0, text.find_first_of(";:\n"));
  while (text.ends_with('.') || text.ends_with('?')) text.pop_back();
  const bool word = text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0;
  if (word) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string term_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::string names;
  for (const auto& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const auto& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  return names;
}

void write_option(Roff& page, const CLI::Option& option) {
  const bool valued = option.get_type_size() != 0 && !option.get_positional();
  const std::string standard = option.get_default_str();
  page.entry(term_of(option), valued ? option.get_type_name() : "",
             option.get_description() + (standard.empty() ? "" : " (default " + standard + ")"));
}

bool is_help(const CLI::App& app, const CLI::Option& option) {
  return &option == app.get_help_ptr();
}

bool is_common(const CLI::App& app, const CLI::Option& option) {
  return option.get_group() == kCommonOptions || is_help(app, option);
}

class Manual {
 public:
  Manual(const CLI::App& program, const std::vector<ManualSection>& sections)
      : program_(program), sections_(sections) {}

  std::string pages() const {
    std::string all = program_page();
    for (const auto* command : commands_of(program_)) all += command_page(*command);
    return all;
  }

  std::string page(const std::string& name) const {
    for (const auto* command : commands_of(program_)) {
      if (command->get_name() == name) return command_page(*command);
    }
    return {};
  }

 private:
  std::string page_of(const CLI::App& command) const {
    return program_.get_name() + "-" + command.get_name();
  }

  Roff begin(const std::string& name, const CLI::App& app) const {
    std::string title = name;
    for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    Roff page(title, program_.get_name() + " " + std::string(baton::version),
              program_.get_name() + " manual");
    const ManualSection* brief = &app == &program_ ? find("NAME") : nullptr;
    page.section("NAME").paragraph(
        name + " - " +
        (brief != nullptr ? brief->entries.front().text : in_brief(app.get_description())));
    return page;
  }

  // "Usage: baton run [OPTIONS] NAME" without its label; `words` is what stands before the options.
  static void write_usage(Roff& page, const CLI::App& app, const std::string& words) {
    const auto& help = static_cast<const CLI::Formatter&>(*app.get_formatter());
    std::string usage = help.make_usage(&app, words);
    while (usage.ends_with('\n')) usage.pop_back();
    const auto rest = usage.find(words);
    page.line(words, usage.substr(std::min(rest + words.size() + 1, usage.size())));
  }

  // Each once, in the order of the commands that have them.
  static void write_common(Roff& page, const std::vector<const CLI::App*>& apps) {
    std::set<std::string> written;
    page.section("COMMON OPTIONS");
    for (const auto* app : apps) {
      for (const auto* option : app->get_options()) {
        if (is_common(*app, *option) && written.insert(term_of(*option)).second) {
          write_option(page, *option);
        }
      }
    }
  }

  static bool has_own_options(const CLI::App& app) {
    const auto options = app.get_options();
    return std::any_of(options.begin(), options.end(),
                       [&](const auto* option) { return !is_common(app, *option); });
  }

  static void write_options(Roff& page, const CLI::App& app) {
    for (const auto* option : app.get_options()) {
      if (!is_common(app, *option)) write_option(page, *option);
    }
  }

  const ManualSection* find(const std::string& heading) const {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const auto& s) { return s.heading == heading; });
    return found == sections_.end() ? nullptr : &*found;
  }

  void write_section(Roff& page, const std::string& heading) const {
    const auto* section = find(heading);
    if (section == nullptr) return;
    page.section(heading);
    for (const auto& entry : section->entries) {
      entry.term.empty() ? page.paragraph(entry.text) : page.entry(entry.term, "", entry.text);
    }
  }

  std::string program_page() const {
    Roff page = begin(program_.get_name(), program_);
    const Footer footer = read_footer(program_.get_footer());
    page.section("SYNOPSIS");
    write_usage(page, program_, program_.get_name());
    page.section("DESCRIPTION").paragraph(sentence(program_.get_description()));
    for (const auto& text : footer.description) page.paragraph(text);
    page.section("COMMANDS");
    for (const auto* command : commands_of(program_)) {
      page.entry(command->get_name(), "", sentence(command->get_description()));
    }
    page.section("OPTIONS");
    for (const auto* option : program_.get_options()) write_option(page, *option);
    for (const auto* heading : {"ENVIRONMENT", "FILES", "EXIT STATUS"}) {
      write_section(page, heading);
    }
    if (!footer.examples.empty()) page.section("EXAMPLES").verbatim(footer.examples);
    page.section("SEE ALSO");
    const auto commands = commands_of(program_);
    for (const auto* command : commands) {
      page.reference(page_of(*command), command == commands.back() ? "" : ",");
    }
    return page.text();
  }

  std::string command_page(const CLI::App& command) const {
    const auto below = commands_of(command);
    const std::string words = program_.get_name() + " " + command.get_name();
    Roff page = begin(page_of(command), command);
    const Footer footer = read_footer(command.get_footer());
    page.section("SYNOPSIS");
    const bool alone = command.get_require_subcommand_min() == 0;  // is itself a command
    if (alone) write_usage(page, command, words);
    for (const auto* verb : below) {
      if (alone || verb != below.front()) page.line_break();
      write_usage(page, *verb, words + " " + verb->get_name());
    }
    page.section("DESCRIPTION").paragraph(sentence(command.get_description()));
    for (const auto& text : footer.description) page.paragraph(text);
    if (has_own_options(command)) {
      page.section("OPTIONS");
      write_options(page, command);
    }
    if (!below.empty()) page.section("COMMANDS");
    for (const auto* verb : below) write_verb(page, *verb, words + " " + verb->get_name());
    write_common(page, below.empty() ? std::vector<const CLI::App*>{&command} : below);
    write_end(page, footer);
    return page.text();
  }

  static void write_verb(Roff& page, const CLI::App& verb, const std::string& words) {
    const Footer footer = read_footer(verb.get_footer());
    page.subsection(words).paragraph(sentence(verb.get_description()));
    for (const auto& text : footer.description) page.paragraph(text);
    for (const auto& text : footer.exit_status) page.paragraph("Exit status: " + text);
    write_options(page, verb);
    if (!footer.examples.empty()) page.verbatim(footer.examples);
  }

  void write_end(Roff& page, const Footer& footer) const {
    const std::string program = program_.get_name();
    if (find("ENVIRONMENT") != nullptr) {
      page.section("ENVIRONMENT").paragraph("The variables that " + program + " reads are in");
      page.reference(program, ".");
    }
    if (!footer.exit_status.empty() || find("EXIT STATUS") != nullptr) page.section("EXIT STATUS");
    for (const auto& text : footer.exit_status) page.paragraph(sentence(text));
    if (find("EXIT STATUS") != nullptr) {
      page.paragraph("What all commands have in common is in").reference(program, ".");
    }
    if (!footer.examples.empty()) page.section("EXAMPLES").verbatim(footer.examples);
    page.section("SEE ALSO").reference(program, "");
  }

  const CLI::App& program_;
  const std::vector<ManualSection>& sections_;
};

}  // namespace

std::string manual_pages(const CLI::App& program, const std::vector<ManualSection>& sections) {
  return Manual(program, sections).pages();
}

std::string manual_page(const CLI::App& program, const std::string& command,
                        const std::vector<ManualSection>& sections) {
  return Manual(program, sections).page(command);
}

}  // namespace baton::command_line
