#include "command_line/command.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "baton/locks.h"
#include "policy/suggest.h"

namespace baton::command_line {
namespace {

constexpr std::size_t kDescriptionColumn = 28;
constexpr std::size_t kColumns = 80;

// At spaces, so that no line of a description is wider than a terminal is.
std::string wrapped(std::string text) {
  constexpr std::size_t kWidth = kColumns - kDescriptionColumn;
  for (std::size_t line = 0; text.size() - line > kWidth;) {
    const auto newline = text.find('\n', line);
    if (newline != std::string::npos && newline - line <= kWidth) {
      line = newline + 1;
      continue;
    }
    const auto space = text.rfind(' ', line + kWidth);
    if (space == std::string::npos || space <= line) break;
    text[space] = '\n';
    line = space + 1;
  }
  return text;
}

class HelpText final : public CLI::Formatter {
 public:
  HelpText() {
    column_width(kDescriptionColumn);
    label("REQUIRED", "");
    label("SUBCOMMAND", "COMMAND");
    label("Positionals", "Arguments");
  }
  // Commands before options; one blank line between two groups is enough.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = make_description(app) + make_usage(app, std::move(name)) +
                       make_positionals(app) + make_subcommands(app, mode) + "\n" +
                       make_groups(app, mode) + "\n" + make_footer(app);
    for (auto at = help.find("\n\n\n"); at != std::string::npos; at = help.find("\n\n\n", at)) {
      help.erase(at, 1);
    }
    return help;
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    const auto rest = followed_by.find(app);
    if (rest == followed_by.end()) return usage;
    usage.erase(usage.find_last_not_of('\n') + 1);
    return usage + " " + rest->second + "\n";
  }

  // What its value is called, and nothing else: the default stands behind the description.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_size() == 0 ? "" : option->get_type_name();
    return type.empty() ? "" : " " + type;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string standard = option->get_default_str();
    return wrapped(option->get_description() +
                   (standard.empty() ? "" : " (default " + standard + ")"));
  }

  std::map<const CLI::App*, std::string> followed_by;
};

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// The command as far as it was understood, and the word that was not, if that was the problem.
struct Reached {
  CLI::App* app;
  std::string path;
  std::string unknown;
};

bool takes_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

Reached reached(CLI::App& root, const std::vector<std::string>& words) {
  Reached at{&root, root.get_name(), {}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("-")) {
      if (takes_value(*at.app, word) || takes_value(root, word)) ++i;
      continue;
    }
    const auto children = commands_of(*at.app);
    if (children.empty()) break;
    const auto next = std::find_if(children.begin(), children.end(),
                                   [&](CLI::App* child) { return child->get_name() == word; });
    if (next == children.end()) {
      at.unknown = word;
      break;
    }
    at.app = *next;
    at.path += " " + word;
  }
  return at;
}

std::string unknown(std::string_view what, const std::string& word,
                    const std::vector<std::string>& known) {
  return policy::unknown_word(what, word,
                              std::vector<std::string_view>(known.begin(), known.end()));
}

// The first option that the command does not have, if any.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const auto& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!word.starts_with("--")) continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return unknown("option", name, known);
    }
  }
  return {};
}

// A URL at a place where none belongs is repeated in the message, and may have a password.
std::string without_passwords(std::string message, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    for (const auto& text : {word, word.substr(word.find('=') + 1)}) {
      const std::string hidden = redact_url(text);
      if (hidden == text) continue;
      for (auto at = message.find(text); at != std::string::npos;
           at = message.find(text, at + hidden.size())) {
        message.replace(at, text.size(), hidden);
      }
    }
  }
  return message;
}

std::vector<std::string> names_of_commands(CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* child : commands_of(app)) names.push_back(child->get_name());
  return names;
}

std::string with_help(const std::string& message, const Reached& at) {
  return message + (message.ends_with('?') ? " See '" : "; see '") + at.path + " --help'";
}

// Commands below other ones that are called so: 'baton lock list' and others for 'list'.
std::vector<std::string> deeper_commands(const Reached& at) {
  std::vector<std::string> found;
  for (CLI::App* child : commands_of(*at.app)) {
    for (const CLI::App* below : commands_of(*child)) {
      if (below->get_name() != at.unknown) continue;
      found.push_back("'" + at.path + " " + child->get_name() + " " + at.unknown + "'");
    }
  }
  return found;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

// Empty if all commands are known.
std::string unknown_command(CLI::App& root, std::vector<std::string> words,
                            const std::map<std::string, std::string>& instead) {
  for (auto& word : words) word = redact_url(word);
  const Reached at = reached(root, words);
  if (at.unknown.empty()) return {};
  std::vector<std::string> meant = deeper_commands(at);
  const auto other_word = instead.find(at.unknown);
  if (other_word != instead.end() && at.app == &root) {
    meant = {"'" + at.path + " " + other_word->second + "'"};
  }
  if (!meant.empty()) {
    return with_help("unknown command '" + at.unknown + "'; did you mean " + listed(meant) + "?",
                     at);
  }
  return with_help(unknown("command", at.unknown, names_of_commands(*at.app)), at);
}

std::string explain(CLI::App& root, std::vector<std::string> words,
                    const CLI::ParseError& problem) {
  std::string message = without_passwords(problem.what(), words);
  for (auto& word : words) word = redact_url(word);
  const Reached at = reached(root, words);
  const std::vector<std::string> names = names_of_commands(*at.app);
  if (auto option = unknown_option(*at.app, words); !option.empty()) {
    message = std::move(option);
  } else if (!names.empty()) {
    message = "say what to do:";
    for (const auto& name : names) message += " " + name;
  } else if (message.size() > 1 && std::islower(static_cast<unsigned char>(message[1])) != 0) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return with_help(message, at);
}

}  // namespace

Option& Option::type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::shows_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::between(int least, int most) {
  option_->check(CLI::Range(least, most).description(""));  // which help would show
  return *this;
}

Option& Option::between(double least, double most) {
  option_->check(CLI::Range(least, most).description(""));  // which help would show
  return *this;
}

Option& Option::not_empty(const std::string& instead) {
  option_->check(CLI::Validator(
      [instead](const std::string& text) {
        return text.empty() ? "it is empty; " + instead : std::string();
      },
      ""));
  return *this;
}

Option& Option::last_counts() {
  option_->take_last();
  return *this;
}

Option& Option::one_value_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option Command::add(const std::string& name, std::string& into, const std::string& about) {
  return Option(*app_->add_option(name, into, about));
}

Option Command::add(const std::string& name, std::vector<std::string>& into,
                    const std::string& about) {
  return Option(*app_->add_option(name, into, about));
}

Option Command::add(const std::string& name, std::size_t& into, const std::string& about) {
  return Option(*app_->add_option(name, into, about));
}

Option Command::add(const std::string& name, int& into, const std::string& about) {
  return Option(*app_->add_option(name, into, about));
}

Option Command::add(const std::string& name, std::optional<int>& into, const std::string& about) {
  return Option(*app_->add_option(name, into, about));
}

Option Command::add(const std::string& name, double& into, const std::string& about) {
  return Option(*app_->add_option(name, into, about));
}

Option Command::add(const std::string& name, bool& into, const std::string& about) {
  return Option(*app_->add_flag(name, into, about));
}

Option Command::add_time(const std::string& name, std::string& into, const std::string& about) {
  return add(name, into, about).type("TIME").shows_default();
}

Command Command::add_command(const std::string& name, const std::string& about,
                             const std::string& examples) {
  Command made(*app_->add_subcommand(name, about)->group("Commands"));
  // Even if there are none: else it has those of its parent.
  made.footer(examples.empty() ? "" : "Examples:\n" + examples);
  return made;
}

Command Command::add_noun(const std::string& name, const std::string& about,
                          const std::string& examples) {
  Command made = add_command(name, about, examples);
  made.app_->require_subcommand(1);
  return made;
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::group_help(const std::string& heading) { app_->get_help_ptr()->group(heading); }

void Command::followed_by(const std::string& rest) {
  // A command has the formatter of its program.
  static_cast<HelpText&>(*app_->get_formatter()).followed_by[app_] = rest;
}

void Command::add_version_flag(const std::string& group) {
  app_->set_version_flag("-V,--version", "", "Print the version and exit")->group(group);
}

void Command::when_given(std::function<void()> call) { app_->callback(std::move(call)); }

bool Command::given() const { return app_->parsed(); }

Program::Program(const std::string& name, const std::string& about)
    : Program(std::make_unique<CLI::App>(about, name)) {}

Program::Program(std::unique_ptr<CLI::App> root) : Command(*root), root_(std::move(root)) {
  root_->formatter(std::make_shared<HelpText>());
  root_->require_subcommand(1);
}

Program::~Program() = default;

bool Program::is_followed() const {
  const auto& followed = static_cast<const HelpText&>(*root_->get_formatter()).followed_by;
  return std::any_of(followed.begin(), followed.end(),
                     [](const auto& command) { return command.first->parsed(); });
}

Understood Program::understand(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--help=man") return {.help = manual_pages(*root_, manual_)};
  if (words.size() == 2 && words[1] == "--help=man") {
    if (auto page = manual_page(*root_, words[0], manual_); !page.empty()) return {.help = page};
  }
  try {
    auto reversed = words;  // CLI11 takes its words from the end
    std::reverse(reversed.begin(), reversed.end());
    root_->parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    if (auto wrong = unknown_command(*root_, words, instead_); !wrong.empty()) {
      return {.wrong = wrong};
    }
    return {.help = root_->help()};
  } catch (const CLI::CallForVersion&) {
    return {.version = true};
  } catch (const CLI::ParseError& problem) {
    const auto left = root_->remaining(true);
    if (auto wrong = unknown_command(*root_, words, instead_); !wrong.empty()) {
      return {.wrong = wrong};
    }
    const bool too_many = is_followed() && !left.empty() && !left.front().starts_with('-');
    return {.wrong = explain(*root_, words, problem),
            .too_many = too_many ? left.front() : std::string()};
  }
  return {};
}

}  // namespace baton::command_line
