#include "apps/documents/setting_words.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "apps/common/options.h"
#include "apps/documents/services.h"
#include "baton/store.h"
#include "policy/duration.h"
#include "policy/yaml.h"

namespace baton::documents {
namespace {

using policy::YamlNode;

Error wrong(const std::string& what) { return {.code = Code::bad_request, .message = what}; }

std::string variable_of(const std::string& name) {
  std::string variable = "DOCUMENTS_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(), [](char c) {
    return c == '-' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c);
  });
  return variable;
}

Result<void> read_map(const YamlNode& map, const std::string& service, SettingWords& words) {
  const auto names = setting_names(service);
  for (const YamlNode& item : map.items) {
    if (find_service(item.key) != nullptr) continue;
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const SettingName& one) { return one.name == item.key; });
    if (!known) return policy::yaml_error(item.key_line, "there is no setting " + item.key);
    if (item.kind != YamlNode::Kind::text) {
      return policy::yaml_error(item.line, item.key + " must be text");
    }
    words[item.key] = item.text;
  }
  return {};
}

Result<void> read_file(const std::string& path, const std::string& service, SettingWords& words) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return wrong("cannot read " + path);
  auto document = policy::read_yaml(text.str());
  const auto in_file = [&](Error error) {
    error.message = path + ": " + error.message;
    return error;
  };
  if (!document) return in_file(document.error());
  if (document->kind != YamlNode::Kind::map) {
    return in_file(policy::yaml_error(1, "the file must be a map of settings"));
  }
  if (auto read = read_map(*document, service, words); !read) return in_file(read.error());
  for (const YamlNode& item : document->items) {
    if (item.key != service) continue;
    if (item.kind != YamlNode::Kind::map) {
      return in_file(policy::yaml_error(item.line, service + " must be a map of settings"));
    }
    if (auto read = read_map(item, service, words); !read) return in_file(read.error());
  }
  return {};
}

Result<bool> truth(const std::string& name, const std::string& text) {
  if (text == "true") return true;
  if (text == "false" || text.empty()) return false;
  return wrong("--" + name + ": true or false, not '" + text + "'");
}

Result<std::vector<Millis>> delays(const std::string& text) {
  std::vector<Millis> found;
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    auto delay = policy::parse_duration(one);
    if (!delay) return wrong("--retry-delays: " + delay.error().message);
    found.push_back(*delay);
  }
  if (found.empty()) return wrong("--retry-delays: name at least one, as 1s,2s,4s");
  return found;
}

bool is_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::vector<SettingName> setting_names(std::string_view service) {
  const KnownService* known = find_service(service);
  const std::string name(service);
  const std::string port = std::to_string(known != nullptr ? known->port : 0);
  return {
      {"database", "URL", "Its own database: sqlite:PATH or postgres://…",
       "sqlite:documents-" + name + ".db"},
      {"broker", "URL", "Where events go and come from: embedded:PATH or rabbitmq://…",
       "embedded:documents-broker.db"},
      {"locks", "URL", "The lock store; default: the database, or a file beside that of SQLite",
       ""},
      {"listen", "IP:PORT", "Where to serve HTTP; port 0 takes any free one", "127.0.0.1:" + port},
      {"instance", "ID", "Who this replica is, for people; default HOST:PID", ""},
      {"run-file", "PATH", "Where to write pid and URL once it serves", ""},
      {"spool", "DIR", "Notification: where messages to users are put", "documents-spool"},
      {"lock-ttl", "TIME", "If a replica dies, others take its locks over after this long", "10s"},
      {"grace", "TIME", "How long requests may take to finish after SIGTERM", "10s"},
      {"max-lag", "TIME", "Not ready when an event has waited in the outbox for longer", "5m"},
      {"retry-delays", "TIMES", "How long to wait before each of the 5 retries; the last repeats",
       "1s,2s,4s,8s,10s"},
      {"handler-timeout", "TIME", "Handling an event has failed if it takes longer", "30s"},
      {"allow-simulation", "", "Documents may ask to fail, by \"simulate\" in their metadata", ""},
      {"log", "FORMAT", "How to log on stdout: json, or text for people", "json"},
      {"log-level", "LEVEL", "From which level: debug, info, warn or error", "info"},
  };
}

Result<SettingWords> read_setting_words(const std::string& service,
                                        const std::string& config_path) {
  SettingWords words;
  if (!config_path.empty()) {
    if (auto read = read_file(config_path, service, words); !read) return read.error();
  }
  for (const SettingName& one : setting_names(service)) {
    const char* value = std::getenv(variable_of(one.name).c_str());
    if (value != nullptr) words[one.name] = value;
    if (!words.contains(one.name)) words[one.name] = one.fallback;
  }
  return words;
}

Result<Settings> understand(const std::string& service, const SettingWords& words) {
  const auto word = [&](const char* name) -> const std::string& { return words.at(name); };
  Settings settings{.service = service,
                    .instance = word("instance"),
                    .database = word("database"),
                    .broker = word("broker"),
                    .locks = word("locks"),
                    .listen = word("listen"),
                    .run_file = word("run-file"),
                    .spool = word("spool")};
  const Millis day = std::chrono::hours(24);
  std::string problem = apps::read_times(
      {{"--lock-ttl", word("lock-ttl"), Millis(500), kMaxTtl, settings.lock_ttl},
       {"--grace", word("grace"), Millis(0), day, settings.grace},
       {"--max-lag", word("max-lag"), Millis(1'000), day, settings.max_lag},
       {"--handler-timeout", word("handler-timeout"), Millis(100), day, settings.handler_timeout}});
  if (problem.empty()) {
    problem = apps::read_log({.format = word("log"), .level = word("log-level")},
                             settings.log_format, settings.log_level);
  }
  if (problem.empty() && !is_listen(settings.listen)) {
    problem = "--listen: write IP:PORT, as 127.0.0.1:8080";
  }
  if (!problem.empty()) return wrong(problem);
  auto retry_delays = delays(word("retry-delays"));
  if (!retry_delays) return retry_delays.error();
  settings.retry_delays = std::move(*retry_delays);
  auto simulation = truth("allow-simulation", word("allow-simulation"));
  if (!simulation) return simulation.error();
  settings.allow_simulation = *simulation;
  return settings;
}

}  // namespace baton::documents
