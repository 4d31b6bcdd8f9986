#include "apps/documents/setting_words.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>

#include "apps/documents/services.h"
#include "baton/store.h"
#include "policy/duration.h"
#include "policy/suggest.h"
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

Result<void> read_map(const YamlNode& map, const std::string& service, const std::string& path,
                      SettingWords& words) {
  const auto names = setting_names(service);
  std::vector<std::string_view> known;
  for (const SettingName& one : names) known.push_back(one.name);
  for (const YamlNode& item : map.items) {
    if (find_service(item.key) != nullptr) continue;
    if (std::find(known.begin(), known.end(), item.key) == known.end()) {
      return policy::yaml_error(item.key_line, policy::unknown_word("setting", item.key, known));
    }
    if (item.kind != YamlNode::Kind::text) {
      return policy::yaml_error(item.line, item.key + " must be text");
    }
    words[item.key] = {item.text, path + ": line " + std::to_string(item.line) + ": " + item.key};
  }
  return {};
}

// The maps of other services are read as well: what is wrong there is found at once.
Result<void> read_document(const YamlNode& document, const std::string& service,
                           const std::string& path, SettingWords& words) {
  if (document.kind != YamlNode::Kind::map) {
    return policy::yaml_error(1, "the file must be a map of settings");
  }
  if (auto read = read_map(document, service, path, words); !read) return read.error();
  for (const YamlNode& item : document.items) {
    if (find_service(item.key) == nullptr) continue;
    if (item.kind != YamlNode::Kind::map) {
      return policy::yaml_error(item.line, item.key + " must be a map of settings");
    }
    SettingWords others;
    SettingWords& into = item.key == service ? words : others;
    if (auto read = read_map(item, item.key, path, into); !read) return read.error();
  }
  return {};
}

Result<void> read_file(const std::string& path, const std::string& service, SettingWords& words) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return wrong("cannot read " + path);
  const auto document = policy::read_yaml(text.str());
  const auto read =
      document ? read_document(*document, service, path, words) : Result<void>(document.error());
  return read ? read : wrong(path + ": " + read.error().message);
}

// IPv6 addresses stand in brackets.
bool is_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (read.ec != std::errc() || read.ptr != end) return false;
  std::string address = text.substr(0, colon);
  in6_addr parsed{};
  if (address.front() != '[') return inet_pton(AF_INET, address.c_str(), &parsed) == 1;
  if (address.back() != ']') return false;
  address = address.substr(1, address.size() - 2);
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

bool starts_with_one_of(const std::string& url, std::initializer_list<std::string_view> schemes) {
  return std::any_of(schemes.begin(), schemes.end(), [&](std::string_view scheme) {
    return url.size() > scheme.size() && url.starts_with(scheme);
  });
}

// Reads the words, and keeps the first error.
class Reader {
 public:
  explicit Reader(const SettingWords& words) : words_(words) {}

  const std::string& text(const char* name) const { return words_.at(name).text; }

  std::string url(const char* name, std::initializer_list<std::string_view> schemes,
                  const char* allowed) {
    if (!starts_with_one_of(text(name), schemes)) refuse(name, allowed, false);
    return text(name);
  }

  void time(const char* name, Millis least, Millis most, Millis& into) {
    const auto read = policy::parse_duration(text(name));
    if (!read || *read < least || *read > most) {
      refuse(name, "a time from " + policy::print_duration(least) + " to " +
                       policy::print_duration(most) + ", as 500ms, 10s or 1m30s");
    } else {
      into = *read;
    }
  }

  void times(const char* name, std::vector<Millis>& into) {
    std::istringstream list(text(name));
    for (std::string one; std::getline(list, one, ',');) {
      const auto delay = policy::parse_duration(one);
      if (!delay) return refuse(name, "times with commas between, as 1s,2s,4s");
      into.push_back(*delay);
    }
    if (into.empty()) refuse(name, "at least one time, as 1s,2s,4s");
  }

  template <typename T>
  void choice(const char* name, std::optional<T> parsed, const char* allowed, T& into) {
    if (parsed) {
      into = *parsed;
    } else {
      refuse(name, allowed);
    }
  }

  void refuse(const char* name, const std::string& allowed, bool repeat = true) {
    if (error_) return;
    const SettingWord& word = words_.at(name);
    error_ = wrong(word.where + ": write " + allowed +
                   (repeat ? ", not '" + one_line(word.text) + "'" : ""));
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  static std::string one_line(std::string text) {
    constexpr std::size_t kMost = 60;
    if (text.size() > kMost) {
      text.resize(kMost);
      text += "…";
    }
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    return text;
  }

  const SettingWords& words_;
  std::optional<Error> error_;
};

std::optional<bool> parse_truth(const std::string& text) {
  if (text == "true") return true;
  if (text == "false" || text.empty()) return false;
  return std::nullopt;
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
  for (const SettingName& one : setting_names(service)) words[one.name] = {one.fallback, one.name};
  if (!config_path.empty()) {
    if (auto read = read_file(config_path, service, words); !read) return read.error();
  }
  for (const SettingName& one : setting_names(service)) {
    const std::string variable = variable_of(one.name);
    if (const char* value = std::getenv(variable.c_str())) words[one.name] = {value, variable};
  }
  return words;
}

Result<Settings> understand(const std::string& service, const SettingWords& words) {
  Reader read(words);
  Settings settings{.service = service,
                    .instance = read.text("instance"),
                    .database = read.url("database", {"sqlite:", "postgres://", "postgresql://"},
                                         "sqlite:PATH or postgres://…"),
                    .broker = read.url("broker", {"embedded:", "rabbitmq://", "rabbitmqs://"},
                                       "embedded:PATH, rabbitmq://… or rabbitmqs://…"),
                    .locks = read.text("locks"),
                    .listen = read.text("listen"),
                    .run_file = read.text("run-file"),
                    .spool = read.text("spool")};
  if (!settings.locks.empty() && settings.locks.find(':') == std::string::npos) {
    read.refuse("locks", "the URL of a lock store, as sqlite:PATH or postgres://…", false);
  }
  if (!is_listen(settings.listen)) read.refuse("listen", "IP:PORT, as 127.0.0.1:8080 or [::1]:0");
  if (settings.spool.empty()) read.refuse("spool", "a directory");
  const Millis day = std::chrono::hours(24);
  read.time("lock-ttl", Millis(500), kMaxTtl, settings.lock_ttl);
  read.time("grace", Millis(0), day, settings.grace);
  read.time("max-lag", Millis(1'000), day, settings.max_lag);
  read.time("handler-timeout", Millis(100), day, settings.handler_timeout);
  read.times("retry-delays", settings.retry_delays);
  read.choice("allow-simulation", parse_truth(read.text("allow-simulation")), "true or false",
              settings.allow_simulation);
  read.choice("log", observe::parse_log_format(read.text("log")), "json or text",
              settings.log_format);
  read.choice("log-level", observe::parse_log_level(read.text("log-level")),
              "debug, info, warn or error", settings.log_level);
  if (read.error()) return *read.error();
  return settings;
}

}  // namespace baton::documents
