#include "cli/cron/crontab_import.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "baton/schedule.h"
#include "cli/cron/cron_file.h"
#include "cli/json_writer.h"

namespace baton::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kWords = {{
    {"@hourly", "@hourly"},
    {"@daily", "@daily"},
    {"@midnight", "@daily"},
    {"@weekly", "@weekly"},
    {"@monthly", "@monthly"},
    {"@yearly", "@yearly"},
    {"@annually", "@yearly"},
    {"@reboot", ""},
}};

// What stands in front of an entry, or at the end: comments and empty lines.
struct Entry {
  int line = 0;
  std::vector<std::string> comments;
  std::string when;
  std::string command;
  std::string input;  // what cron gives the command to read
  bool has_input = false;
  std::map<std::string, std::string> environment;
  std::string shell;
  std::string time_zone;
  std::string jitter;
  std::string directory;
  std::string name;
};

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// The first word; `rest` is what stands behind it.
std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const auto end = std::min(rest.find_first_of(" \t"), rest.size());
  const auto word = rest.substr(0, end);
  rest = trimmed(rest.substr(end));
  return word;
}

// NAME = value, with or without quotes around either.
std::optional<std::pair<std::string, std::string>> variable_of(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto unquoted = [](std::string_view text) {
    text = trimmed(text);
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front()) {
      text = text.substr(1, text.size() - 2);
    }
    return std::string(text);
  };
  std::string name = unquoted(line.substr(0, equals));
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0 ||
      !std::all_of(name.begin(), name.end(), fits)) {
    return std::nullopt;
  }
  return std::pair(std::move(name), unquoted(line.substr(equals + 1)));
}

// The first % that is not escaped ends the command; what follows is its input, where each further
// one is the end of a line.
void split_input(std::string_view text, Entry& entry) {
  std::string* into = &entry.command;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '%') {
      *into += '%';
      ++i;
    } else if (text[i] != '%') {
      *into += text[i];
    } else if (entry.has_input) {
      *into += '\n';
    } else {
      entry.has_input = true;
      into = &entry.input;
    }
  }
}

// YAML would not read such a word as a text.
bool is_plain_text(const std::string& name) {
  static const std::set<std::string> kOthers = {"null", "true", "false", "yes", "no",
                                                "on",   "off",  "y",     "n"};
  return !kOthers.contains(name) && name.find_first_not_of("0123456789") != std::string::npos;
}

// From the first path in the command, or its first word: /usr/bin/report.sh is report. Where output
// goes says nothing of the command: > /dev/null.
std::string name_of(const std::string& command) {
  std::istringstream words(command);
  std::string found;
  std::string first;
  bool redirected = false;
  for (std::string word; words >> word && found.empty();) {
    const auto slash = word.find_last_of('/');
    const bool target = std::exchange(redirected, word.ends_with('>') || word.ends_with('<'));
    if (target || word.find_first_of("<>") != std::string::npos) continue;
    if (first.empty()) first = word;
    if (slash != std::string::npos && word.find('=') == std::string::npos) {
      found = word.substr(slash + 1);
    }
  }
  if (found.empty()) found = first.substr(first.find_last_of('/') + 1);
  for (const char* ending : {".sh", ".py", ".pl", ".rb", ".php"}) {
    if (found.ends_with(ending)) found = found.substr(0, found.rfind('.'));
  }
  std::string name;
  for (const char c : found.substr(0, 60)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  if (name.empty()) return "job";
  return is_plain_text(name) ? name : "job-" + name;
}

// A line that is not in the input ends it, or what follows in the crontab would be run.
std::string with_input(const std::string& command, const std::string& input) {
  std::string end = "END_OF_INPUT";
  while (("\n" + input + "\n").find("\n" + end + "\n") != std::string::npos) end += "_";
  return "{ " + command + "\n} <<'" + end + "'\n" + input + "\n" + end;
}

std::string quoted(const std::string& text) {
  JsonWriter json;
  json.begin_array().value(text).end_array();
  const std::string list = json.text();
  return list.substr(1, list.size() - 2);
}

bool is_plain(const std::string& text) {
  return !text.empty() && text.front() != ' ' &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return (c < 0x20 && c != '\n') || c >= 0x7F; });
}

// As it can be read and changed: a block of lines, where that is possible.
std::string as_block(const std::string& text, std::size_t indent) {
  if (!is_plain(text)) return " " + quoted(text) + "\n";
  std::string block = " |-\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    block.append(indent, ' ').append(line).append("\n");
  }
  return block;
}

class Import {
 public:
  explicit Import(const CrontabSource& source)
      : source_(source), time_zone_(source.time_zone), directory_(source.home) {}

  Result<ImportedCrontab> read(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      read_line(++number, trimmed(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    give_names();
    ImportedCrontab made{.yaml = print(),
                         .jobs = entries_.size(),
                         .problems = problems_,
                         .first_words = first_words()};
    if (auto parsed = parse_cron_file(made.yaml); !parsed) {
      return Error{.code = Code::bad_request,
                   .message = "what came of it is refused: " + parsed.error().message};
    }
    return made;
  }

 private:
  void problem(int line, const std::string& what) {
    problems_.push_back(fmt::format("line {}: {}", line, what));
  }

  void read_line(int number, std::string_view line) {
    if (line.empty() || line.starts_with('#')) {
      // An empty line at the beginning, or a second one, says nothing.
      const bool wanted = !line.empty() || (!comments_.empty() && !comments_.back().empty());
      if (wanted) comments_.emplace_back(line);
      return;
    }
    if (const auto variable = variable_of(line); variable && !is_entry(line)) {
      return take_variable(number, variable->first, variable->second);
    }
    read_entry(number, line);
  }

  // A field of a time comes first, or @; a name of a variable begins with a letter or a quote.
  static bool is_entry(std::string_view line) {
    return std::isdigit(static_cast<unsigned char>(line.front())) != 0 || line.front() == '*' ||
           line.front() == '@';
  }

  void take_variable(int number, const std::string& name, const std::string& value) {
    if (name == "CRON_TZ") {
      if (auto zone = Schedule::cron("@daily", value); !zone) {
        return problem(number, "CRON_TZ: " + zone.error().message);
      }
      time_zone_ = value;
    } else if (name == "SHELL") {
      shell_ = value == "/bin/sh" ? "" : value;
    } else if (name == "MAILTO" || name == "MAILFROM") {
      if (!value.empty())
        problem(number, name + ": what commands write goes to the log, not to mail");
    } else if (name == "RANDOM_DELAY") {
      take_delay(number, value);
    } else if (name == "START_HOURS_RANGE") {
      problem(number, name + " is of anacron, and left out");
    } else if (name == "HOME") {
      directory_ = value;
      environment_[name] = value;
    } else if (name.starts_with("BATON_") && name != "BATON_STORE") {
      problem(number, name + " is set by baton for each fire, and left out");
    } else {
      environment_[name] = value;
    }
  }

  void take_delay(int number, const std::string& value) {
    const bool fits = !value.empty() && value.size() < 5 &&
                      value.find_first_not_of("0123456789") == std::string::npos;
    if (!fits) return problem(number, "RANDOM_DELAY is a number of minutes, not '" + value + "'");
    jitter_ = std::atoi(value.c_str()) == 0 ? "" : value + "m";
  }

  void read_entry(int number, std::string_view line) {
    if (line.front() == '-') line.remove_prefix(1);  // no line in syslog
    Entry entry{.line = number};
    std::string_view rest = line;
    if (line.starts_with('@')) {
      if (!take_at(number, take_word(rest), entry)) return;
    } else {
      for (int i = 0; i < 5; ++i) entry.when += (i > 0 ? " " : "") + std::string(take_word(rest));
    }
    if (source_.has_users) {
      const std::string user(take_word(rest));
      if (user != source_.user) {
        return problem(number,
                       fmt::format("left out: it runs as {}, and baton cron runs all as its "
                                   "own user; see --user",
                                   user));
      }
    }
    if (rest.empty()) return problem(number, "left out: it has no command");
    if (auto when = Schedule::cron(entry.when, time_zone_); !when) {
      return problem(number, "left out: " + when.error().message);
    }
    split_input(rest, entry);
    finish(number, std::move(entry));
  }

  bool take_at(int number, std::string_view word, Entry& entry) {
    for (const auto& [known, ours] : kWords) {
      if (word == known && !ours.empty()) {
        entry.when = ours;
        return true;
      }
    }
    problem(number, word == "@reboot" ? std::string("left out: @reboot is of one machine")
                                      : fmt::format("left out: {} is not known", word));
    return false;
  }

  void finish(int number, Entry entry) {
    entry.comments = std::exchange(comments_, {});
    entry.environment = environment_;
    entry.shell = shell_;
    entry.time_zone = time_zone_;
    entry.jitter = jitter_;
    entry.directory = directory_;
    if (!entry.directory.starts_with('/')) entry.directory.clear();
    if (entry.directory.empty()) problem(number, "it runs in the directory of baton, not in HOME");
    entries_.push_back(std::move(entry));
  }

  [[nodiscard]] std::vector<std::string> first_words() const {
    std::vector<std::string> words;
    for (const Entry& entry : entries_) {
      std::string_view rest = entry.command;
      const auto word = take_word(rest);
      words.emplace_back(rest.empty() ? std::string_view() : word);
    }
    return words;
  }

  void give_names() {
    std::map<std::string, int> used;
    std::set<std::string> taken;
    for (Entry& entry : entries_) {
      const std::string base = name_of(entry.command);
      do {
        const int count = ++used[base];
        entry.name = count == 1 ? base : base + "-" + std::to_string(count);
      } while (!taken.insert(entry.name).second);
    }
  }

  // Whether all entries have the same value, which then stands in `defaults`.
  template <typename Member>
  [[nodiscard]] bool common(Member member) const {
    return std::all_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.*member == entries_.front().*member;
    });
  }

  static std::string print_environment(const Entry& entry, std::size_t indent) {
    if (entry.environment.empty()) return {};
    std::string text = fmt::format("{:{}}environment:\n", "", indent);
    for (const auto& [name, value] : entry.environment) {
      text += fmt::format("{:{}}  {}: {}\n", "", indent, name, quoted(value));
    }
    return text;
  }

  [[nodiscard]] std::string print() const {
    std::string text =
        "defaults:\n"
        "  # As cron does: a run that was missed or cut off is not made up for.\n"
        "  misfire: skip\n"
        "  on-crash: skip\n";
    const bool any = !entries_.empty();
    if (any && common(&Entry::time_zone)) {
      text += "  time-zone: " + entries_.front().time_zone + "\n";
    }
    if (any && common(&Entry::directory) && !entries_.front().directory.empty()) {
      text += "  directory: " + quoted(entries_.front().directory) + "\n";
    }
    if (any && common(&Entry::environment)) text += print_environment(entries_.front(), 2);
    text += "jobs:\n";
    for (const Entry& entry : entries_) text += print(entry);
    for (const std::string& comment : comments_)
      text += comment.empty() ? "\n" : "  " + comment + "\n";
    return text;
  }

  [[nodiscard]] std::string print(const Entry& entry) const {
    std::string text;
    for (const std::string& comment : entry.comments) {
      text += comment.empty() ? "\n" : "  " + comment + "\n";
    }
    text += fmt::format("  {}:\n    cron: {}\n", entry.name, quoted(entry.when));
    if (!common(&Entry::time_zone)) text += "    time-zone: " + entry.time_zone + "\n";
    if (!entry.jitter.empty()) text += "    jitter: " + entry.jitter + "\n";
    if (!common(&Entry::directory) && !entry.directory.empty()) {
      text += "    directory: " + quoted(entry.directory) + "\n";
    }
    if (!common(&Entry::environment)) text += print_environment(entry, 4);
    std::string command = entry.command;
    if (entry.has_input) {
      command = with_input(command, entry.input);
    }
    if (entry.shell.empty()) return text + "    command:" + as_block(command, 6);
    return text + "    command:\n      - " + quoted(entry.shell) + "\n      - -c\n      -" +
           as_block(command, 8);
  }

  const CrontabSource& source_;
  std::string time_zone_;
  std::string directory_;
  std::string shell_;
  std::string jitter_;
  std::map<std::string, std::string> environment_;
  std::vector<std::string> comments_;
  std::vector<Entry> entries_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<ImportedCrontab> import_crontab(std::string_view text, const CrontabSource& source) {
  return Import(source).read(text);
}

std::string local_time_zone() {
  const char* set = std::getenv("TZ");
  std::string zone = set != nullptr ? set : "";
  if (zone.starts_with(':')) zone.erase(0, 1);
  if (zone.empty()) {
    std::error_code none;
    const std::string target = std::filesystem::canonical("/etc/localtime", none).string();
    const auto at = target.find("/zoneinfo/");
    if (at != std::string::npos) zone = target.substr(at + 10);
  }
  return !zone.empty() && Schedule::cron("@daily", zone) ? zone : "UTC";
}

}  // namespace baton::cli
