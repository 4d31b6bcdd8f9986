#include "apps/documents/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "apps/common/options.h"
#include "apps/documents/services.h"
#include "apps/documents/setting_words.h"
#include "command_line/command.h"

namespace baton::documents {
namespace {

using command_line::Command;
using command_line::Program;

constexpr const char* kAbout =
    "Five services that process documents and talk by events only. Each has its own database; all\n"
    "of them survive kill -9.";
constexpr const char* kExamples =
    "Examples:\n"
    "  documents up --replicas validation=3,enrichment=2\n"
    "  curl -H 'Content-Type: application/json' http://127.0.0.1:8080/documents \\\n"
    "    -d '{\"title\": \"A letter\", \"contentType\": \"text/plain\", \"owner\": \"ann\",\n"
    "         \"content\": \"Dear Bob, …\"}'\n"
    "  documents verify --wait 10s\n"
    "'documents validation --help' shows the options of a service.";
constexpr int kMostReplicas = 32;

// As they are typed.
struct Words {
  SettingWords settings;
  bool simulation = false;
  bool redriven = false;
  std::string config;
  std::string replicas;
  std::string lock_ttl;
  std::string retry_delays;
  std::string wait = "0s";
  int port = 8080;
};

class Parser {
 public:
  // `initial` are the settings before the command line, of the service that is to run.
  explicit Parser(SettingWords initial)
      : program_("documents", kAbout), initial_(std::move(initial)) {
    program_.footer(kExamples);
    for (const KnownService& service : all_services()) add_service(service);
    add_others();
  }

  command_line::Understood understand(const std::vector<std::string>& given) {
    return program_.understand(given);
  }
  [[nodiscard]] std::optional<std::string> service() const {
    for (const auto& [name, command] : services_) {
      if (command.given() && !verify_audit_->given()) return name;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string config() const { return words_.config; }

  // Empty: all is well.
  std::string fill(Options& options) {
    using Do = Options::Command;
    options.places = places_;
    options.json = json_;
    if (const auto name = service()) {
      auto& words = settings_[*name];
      if (words_.simulation) words["allow-simulation"] = "true";
      auto settings = documents::understand(*name, words);
      if (!settings) return settings.error().message;
      options.settings = std::move(*settings);
      return {};
    }
    options.command = up_->given()             ? Do::up
                      : verify_->given()       ? Do::verify
                      : verify_audit_->given() ? Do::verify_audit
                                               : Do::trace;
    options.correlation_id = correlation_id_;
    options.known_head = known_head_;
    options.verify.redriven = words_.redriven;
    options.up = {.port = words_.port,
                  .allow_simulation = words_.simulation,
                  .config = words_.config,
                  .lock_ttl = words_.lock_ttl,
                  .retry_delays = words_.retry_delays};
    if (std::string wrong = read_replicas(options.up); !wrong.empty()) return wrong;
    const Millis day = std::chrono::hours(24);
    return apps::read_times({{"--wait", words_.wait, Millis(0), day, options.wait}});
  }

 private:
  void add_service(const KnownService& service) {
    const std::string name(service.name);
    Command command = program_.add_command(name, std::string(service.about));
    auto& words = settings_[name];
    for (const SettingName& one : setting_names(name)) {
      words[one.name] = one.fallback;
      if (one.type.empty()) {
        command.add("--" + one.name, words_.simulation, one.about);
        continue;
      }
      auto option = command.add("--" + one.name, words[one.name], one.about);
      option.type(one.type).last_counts();
      if (!one.fallback.empty()) option.shows_default(one.fallback);
    }
    for (const auto& [setting, value] : initial_) words[setting] = value;
    command.add("--config", words_.config, "A YAML file of settings; default $DOCUMENTS_CONFIG")
        .type("FILE")
        .last_counts();
    command.footer(
        "What is not typed is taken from the environment (DOCUMENTS_LOCK_TTL), then from the file\n"
        "of --config (lock-ttl: 10s, or under the name of the service).");
    services_.emplace_back(name, command);
    if (name == "audit") add_verify_audit(command);
  }

  void add_verify_audit(Command audit) {
    verify_audit_ = audit.add_command("verify", "Compute the hash chain of the audit log anew");
    add_places(*verify_audit_);
    verify_audit_
        ->add("--known-head", known_head_, "A head that was printed earlier must still be there")
        .type("SEQUENCE:HASH");
    verify_audit_->add("--json", json_, "The result as one JSON object");
  }

  void add_places(Command command) {
    command.add("--directory", places_.directory, "Of databases, logs and spool")
        .type("DIR")
        .last_counts()
        .shows_default();
    command
        .add("--postgres", places_.postgres,
             "The databases are on this server, one a service, beside the one that is named")
        .type("URL")
        .last_counts();
    command.add("--prefix", places_.prefix, "Of the names of the databases on PostgreSQL")
        .type("NAME")
        .last_counts()
        .shows_default();
  }

  void add_others() {
    up_ = program_.add_command("up", "Run all services, and show how they are");
    add_places(*up_);
    up_->add("--rabbitmq", places_.rabbitmq, "The broker; default: one in a file").type("URL");
    up_->add("--replicas", words_.replicas, "How many of a service, as validation=3,audit=2")
        .type("LIST");
    up_->add("--port", words_.port, "Of ingestion; the other services follow; 0: any free ones")
        .type("N")
        .between(0, 65'000)
        .shows_default();
    up_->add("--config", words_.config, "A YAML file of settings for all services").type("FILE");
    up_->add("--lock-ttl", words_.lock_ttl, "For all services").type("TIME");
    up_->add("--retry-delays", words_.retry_delays, "For all services").type("TIMES");
    up_->add("--allow-simulation", words_.simulation,
             "Documents may ask to fail, by \"simulate\" in their metadata");

    verify_ = program_.add_command("verify", "Whether the databases of all services agree");
    add_places(*verify_);
    verify_->add_time("--wait", words_.wait, "Give what is unfinished so long to come right");
    verify_->add("--redriven", words_.redriven,
                 "Dead letters were redriven: a document may have failed more than once");
    verify_->add("--json", json_, "The result as one JSON object");

    trace_ = program_.add_command("trace", "All that happened under one correlation id");
    add_places(*trace_);
    trace_->add("CORRELATION_ID", correlation_id_, "As the answer to POST /documents has it")
        .required();
    trace_->add("--json", json_, "A JSON object a line");
  }

  std::string read_replicas(UpOptions& into) const {
    std::istringstream list(words_.replicas);
    for (std::string one; std::getline(list, one, ',');) {
      const auto equals = one.find('=');
      const std::string name = one.substr(0, equals);
      int count = 0;
      const char* end = one.data() + one.size();
      const bool number = equals != std::string::npos &&
                          std::from_chars(one.data() + equals + 1, end, count).ptr == end;
      if (find_service(name) == nullptr || !number || count < 0 || count > kMostReplicas) {
        return "--replicas: write SERVICE=N, as validation=3, not '" + one + "'";
      }
      into.replicas[name] = count;
    }
    return {};
  }

  Program program_;
  const SettingWords initial_;
  Words words_;
  Places places_;
  bool json_ = false;
  std::string correlation_id_;
  std::string known_head_;
  std::map<std::string, SettingWords> settings_;
  std::vector<std::pair<std::string, Command>> services_;
  std::optional<Command> up_, verify_, trace_, verify_audit_;
};

}  // namespace

// Twice: what the environment and the file say depends on what is typed, and is what counts where
// nothing is typed.
Parsed parse_command_line(const std::vector<std::string>& given) {
  Parser typed({});
  const auto understood = typed.understand(given);
  Parsed parsed{.help = understood.help, .wrong = understood.wrong};
  if (!parsed.help.empty() || !parsed.wrong.empty()) return parsed;
  SettingWords initial;
  if (const auto service = typed.service()) {
    std::string config = typed.config();
    const char* variable = std::getenv("DOCUMENTS_CONFIG");
    if (config.empty() && variable != nullptr) config = variable;
    auto words = read_setting_words(*service, config);
    if (!words) {
      parsed.wrong = words.error().message;
      return parsed;
    }
    initial = std::move(*words);
  }
  Parser parser(std::move(initial));
  (void)parser.understand(given);
  parsed.wrong = parser.fill(parsed.options);
  if (!parsed.wrong.empty()) parsed.wrong += "; see 'documents --help'";
  return parsed;
}

}  // namespace baton::documents
