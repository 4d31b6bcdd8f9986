#include "cli/cron/command_keys.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "cli/cron/spawner.h"
#include "schedule/job_section.h"

namespace baton::cli {
namespace {

using policy::yaml_error;
using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

constexpr std::array<std::string_view, 8> kKeys = {"command",          "timeout",     "grace",
                                                   "retries",          "retry-after", "environment",
                                                   "pass-environment", "directory"};
constexpr std::size_t kMaxWords = 1000;
constexpr std::size_t kMaxVariables = 200;
constexpr std::size_t kMaxPath = 4095;
constexpr int kMaxRetries = 100;

Result<void> check_text(const YamlNode& item, const std::string& text) {
  if (text.find('\0') == std::string::npos) return {};
  return yaml_error(item.line, "a zero byte cannot be given to a command");
}

Result<void> read_words(const YamlNode& item, std::vector<std::string>& words) {
  words.clear();
  if (item.kind == Kind::text && !item.text.empty()) {
    if (auto ok = check_text(item, item.text); !ok) return ok;
    words = {"/bin/sh", "-c", item.text};
    return {};
  }
  if (item.kind != Kind::list || item.items.empty()) {
    return schedule::expected(item, "a list of arguments, or text for /bin/sh");
  }
  if (item.items.size() > kMaxWords) {
    return yaml_error(item.line, "a command has at most 1000 arguments");
  }
  for (const YamlNode& word : item.items) {
    if (word.kind != Kind::text) {
      return yaml_error(word.line, "an argument is text; quote it if it looks like something else");
    }
    if (auto ok = check_text(word, word.text); !ok) return ok;
    words.push_back(word.text);
  }
  if (words.front().empty()) return yaml_error(item.line, "the name of the program is empty");
  return {};
}

Result<void> check_variable(int line, std::string_view name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  const bool fine = !name.empty() && letter(static_cast<unsigned char>(name.front())) &&
                    std::all_of(name.begin(), name.end(), [&](unsigned char c) {
                      return c < 0x80 && (letter(c) || std::isdigit(c) != 0);
                    });
  if (!fine) {
    return yaml_error(line, "'" + std::string(name.substr(0, 60)) + "' is no name of a variable");
  }
  return {};
}

Result<void> read_environment(const YamlNode& item, CronCommand& command) {
  if (item.kind == Kind::none) return {};
  if (item.kind != Kind::map) return schedule::expected(item, "a map of variables");
  for (const YamlNode& variable : item.items) {
    if (auto ok = check_variable(variable.key_line, variable.key); !ok) return ok;
    if (variable.key.starts_with("BATON_") && variable.key != "BATON_STORE") {
      return yaml_error(variable.key_line, variable.key + " is set by baton for each fire");
    }
    if (variable.kind != Kind::text && variable.kind != Kind::none) {
      return schedule::expected(variable, "text");
    }
    if (auto ok = check_text(variable, variable.text); !ok) return ok;
    command.environment[variable.key] = variable.text;
  }
  return {};
}

Result<void> read_passed(const YamlNode& item, CronCommand& command) {
  if (item.kind == Kind::none) return {};
  if (item.kind != Kind::list) return schedule::expected(item, "a list of names of variables");
  for (const YamlNode& name : item.items) {
    if (name.kind != Kind::text) return yaml_error(name.line, "the name of a variable is text");
    if (auto ok = check_variable(name.line, name.text); !ok) return ok;
    command.pass_environment.push_back(name.text);
  }
  return {};
}

Result<void> read_time(const YamlNode& item, bool zero_too, Millis& into) {
  auto time = schedule::read_duration(item, zero_too);
  if (!time) return time.error();
  into = *time;
  return {};
}

}  // namespace

bool is_command_key(std::string_view key) {
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

Result<int> read_number(const YamlNode& item, int least, int most) {
  int number = 0;
  const char* const end = item.text.data() + item.text.size();
  const auto [rest, problem] = std::from_chars(item.text.data(), end, number);
  if (item.kind != Kind::text || problem != std::errc() || rest != end || number < least ||
      number > most) {
    return schedule::expected(
        item, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

Result<void> read_command_key(const YamlNode& item, CronCommand& command) {
  if (item.key == "command") return read_words(item, command.words);
  if (item.key == "timeout") return read_time(item, true, command.timeout);
  if (item.key == "grace") return read_time(item, true, command.grace);
  if (item.key == "retry-after") return read_time(item, true, command.retry_after);
  if (item.key == "environment") return read_environment(item, command);
  if (item.key == "pass-environment") return read_passed(item, command);
  if (item.key == "retries") {
    auto number = read_number(item, 0, kMaxRetries);
    if (!number) return number.error();
    command.retries = *number;
    return {};
  }
  if (item.kind != Kind::text || !item.text.starts_with('/') || item.text.size() > kMaxPath ||
      item.text.find('\0') != std::string::npos) {
    return schedule::expected(item, "a path that begins with /");
  }
  command.directory = item.text;
  return {};
}

Result<void> check_command(const YamlNode& job, const CronCommand& command) {
  std::size_t size = 0;
  for (const std::string& word : command.words) size += word.size() + 1;
  if (size > kMaxCommandBytes) {
    return yaml_error(job.key_line, "the command of '" + job.key + "' is longer than 64 KiB");
  }
  size = 0;
  for (const auto& [name, value] : command.environment) size += name.size() + value.size() + 2;
  if (size > kMaxCommandBytes || command.environment.size() > kMaxVariables ||
      command.pass_environment.size() > kMaxVariables) {
    return yaml_error(job.key_line,
                      "the environment of '" + job.key + "' has more than 200 variables or 64 KiB");
  }
  return {};
}

}  // namespace baton::cli
