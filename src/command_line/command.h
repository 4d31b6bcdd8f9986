#pragma once

// What can be typed behind the name of a program. CLI11, which reads it, is known to command.cc and
// manual.cc alone: it is large, and would be compiled again for every file that describes a
// command.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line/manual.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton::command_line {

// Something that a command can be given. Each call returns *this.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& type(const std::string& name);  // what help calls its value
  Option& group(const std::string& heading);
  Option& required();
  Option& shows_default();
  Option& shows_default(const std::string& text);
  Option& between(int least, int most);
  Option& between(double least, double most);
  Option& not_empty(const std::string& instead);  // what to do instead of giving an empty text
  Option& last_counts();                          // if it is repeated
  Option& one_value_a_time();                     // of many, each behind an option of its own

 private:
  CLI::Option* option_;
};

// Part of a Program, which outlives it.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  // An option if the name begins with dashes, else a word at its place. `into` outlives the program
  // and has its default.
  Option add(const std::string& name, std::string& into, const std::string& about);
  Option add(const std::string& name, std::vector<std::string>& into, const std::string& about);
  Option add(const std::string& name, std::size_t& into, const std::string& about);
  Option add(const std::string& name, int& into, const std::string& about);
  Option add(const std::string& name, std::optional<int>& into, const std::string& about);
  Option add(const std::string& name, double& into, const std::string& about);
  Option add(const std::string& name, bool& into, const std::string& about);  // without a value

  // A span of time, as 30s; help shows the one that is there if none is given.
  Option add_time(const std::string& name, std::string& into, const std::string& about);

  Command add_command(const std::string& name, const std::string& about,
                      const std::string& examples = "");
  // Must be followed by a command.
  Command add_noun(const std::string& name, const std::string& about, const std::string& examples);

  void footer(const std::string& text);
  void group_help(const std::string& heading);
  void add_version_flag(const std::string& group);  // see Understood::version
  void followed_by(const std::string& rest);  // in its usage, but not read here; see is_followed
  void when_given(std::function<void()> call);
  [[nodiscard]] bool given() const;

 protected:
  CLI::App* app_;
};

struct Understood {
  std::string help;           // to be printed instead of doing anything
  std::string wrong;          // one line: what is, and where to look
  bool version = false;       // is asked for, and nothing else
  std::string too_many = {};  // the first word too many, of a command with a rest: see followed_by
};

class Program : public Command {
 public:
  Program(const std::string& name, const std::string& about);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Another word that people may try for the command `instead`, such as 'lock list'.
  void suggest(const std::string& word, const std::string& instead) { instead_[word] = instead; }

  // A section of the program's own manual page.
  void manual(ManualSection section) { manual_.push_back(std::move(section)); }

  // Without help and without anything wrong, the command may be done.
  // `--help=man` alone asks for all manual pages as help, behind a command for the page of that
  // one: see manual_pages.
  [[nodiscard]] Understood understand(const std::vector<std::string>& words);

  // Whether the command that was understood has a rest that is not read here.
  [[nodiscard]] bool is_followed() const;

 private:
  explicit Program(std::unique_ptr<CLI::App> root);

  std::unique_ptr<CLI::App> root_;
  std::map<std::string, std::string> instead_;
  std::vector<ManualSection> manual_;
};

}  // namespace baton::command_line
