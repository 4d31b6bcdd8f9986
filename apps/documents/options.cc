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
    "Five services that process documents and talk by events only. Each has its own\n"
    "database; all of them survive kill -9.";
constexpr const char* kExamples =
    "Examples:\n"
    "  documents up --replicas validation=3,enrichment=2\n"
    "  curl -H 'Content-Type: application/json' http://127.0.0.1:8080/documents \\\n"
    "    -d '{\"title\": \"A letter\", \"contentType\": \"text/plain\", \"owner\": \"ann\",\n"
    "         \"content\": \"Dear Bob, …\"}'\n"
    "  documents trace CORRELATION_ID      # which the answer has\n"
    "  documents verify --wait 10s\n"
    "  documents audit verify              # whether anybody changed the audit log\n"
    "'documents validation --help' shows the options of a service.";
constexpr int kMostReplicas = 32;
const std::string kNotTyped(1, '\0');  // an argument cannot be that

// As they are typed.
struct Words {
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
  Parser() : program_("documents", kAbout) {
    program_.footer(kExamples);
    add_manual();
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
  // Empty: all is well.
  std::string fill(Options& options) {
    using Do = Options::Command;
    options.places = places_;
    options.json = json_;
    if (const auto name = service()) return fill(*name, options.settings);
    take_places_from_environment(options.places);
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
    if (options.command == Do::up) {
      if (std::string wrong = check_services(); !wrong.empty()) return wrong;
    }
    const Millis day = std::chrono::hours(24);
    return apps::read_times({{"--wait", words_.wait, Millis(0), day, options.wait}});
  }

 private:
  std::string fill(const std::string& name, Settings& into) {
    std::string config = words_.config;
    if (const char* path = std::getenv("DOCUMENTS_CONFIG"); config.empty() && path != nullptr) {
      config = path;
    }
    auto words = read_setting_words(name, config);
    if (!words) return words.error().message;
    for (const auto& [setting, text] : typed_[name]) {
      if (text != kNotTyped) (*words)[setting] = {text, "--" + setting};
    }
    if (words_.simulation) (*words)["allow-simulation"] = {"true", "--allow-simulation"};
    auto settings = documents::understand(name, *words);
    if (!settings) return settings.error().message;
    into = std::move(*settings);
    return {};
  }

  // What the services of `up` would refuse, before they are started. It gives them their URLs.
  std::string check_services() {
    for (const KnownService& service : all_services()) {
      auto& typed = typed_[std::string(service.name)];
      typed["database"] = "sqlite:documents.db";
      typed["broker"] = "embedded:broker.db";
      typed["listen"] = "127.0.0.1:0";
      if (!words_.lock_ttl.empty()) typed["lock-ttl"] = words_.lock_ttl;
      if (!words_.retry_delays.empty()) typed["retry-delays"] = words_.retry_delays;
      Settings unused;
      if (std::string wrong = fill(std::string(service.name), unused); !wrong.empty()) return wrong;
    }
    return {};
  }

  // Their URLs may have passwords, which a command line would show to everybody on the machine.
  static void take_places_from_environment(Places& places) {
    const auto take = [](const char* variable, std::string& into) {
      const char* value = std::getenv(variable);
      if (into.empty() && value != nullptr) into = value;
    };
    take("DOCUMENTS_POSTGRES", places.postgres);
    take("DOCUMENTS_RABBITMQ", places.rabbitmq);
  }

  void add_service(const KnownService& service) {
    const std::string name(service.name);
    Command command = program_.add_command(name, std::string(service.about));
    auto& typed = typed_[name];
    for (const SettingName& one : setting_names(name)) {
      if (one.type.empty()) {
        command.add("--" + one.name, words_.simulation, one.about);
        continue;
      }
      typed[one.name] = kNotTyped;
      auto option = command.add("--" + one.name, typed[one.name], one.about);
      option.type(one.type).last_counts();
      if (!one.fallback.empty()) option.shows_default(one.fallback);
    }
    command.add("--config", words_.config, "A YAML file of settings; default $DOCUMENTS_CONFIG")
        .type("FILE")
        .last_counts();
    command.footer(
        "What is not typed is taken from the environment (DOCUMENTS_LOCK_TTL), then from the file\n"
        "of --config (lock-ttl: 10s, or under the name of the service).");
    services_.emplace_back(name, command);
    if (name == "audit") add_verify_audit(command);
  }

  void add_manual() {
    program_.manual({"NAME", {{"", "five services that process documents and talk by events"}}});
    program_.manual({"ENVIRONMENT",
                     {{"DOCUMENTS_CONFIG", "The file of settings, if --config is not given."},
                      {"DOCUMENTS_POSTGRES",
                       "Of up, verify and trace: the server, if --postgres is not given."},
                      {"DOCUMENTS_RABBITMQ", "Of up: the broker, if --rabbitmq is not given."},
                      {"DOCUMENTS_DATABASE, DOCUMENTS_BROKER, ...",
                       "Any option of a service, in upper case and with underscores."}}});
    program_.manual({"FILES",
                     {{"/etc/documents/documents.yaml",
                       "The settings of the services that systemd starts, as documents@ingestion."},
                      {"/etc/documents/SERVICE.env",
                       "Variables of one of them, such as URLs with passwords."}}});
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
             "A database for each service on this server, beside the one that is named; "
             "default: $DOCUMENTS_POSTGRES, else SQLite files")
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
    up_->add("--rabbitmq", places_.rabbitmq,
             "The broker; default: $DOCUMENTS_RABBITMQ, else an embedded one, in a file")
        .type("URL");
    up_->add("--replicas", words_.replicas, "How many of a service, as validation=3,audit=2")
        .type("LIST");
    up_->add("--port", words_.port, "Of ingestion; the other services follow; 0: any free ones")
        .type("N")
        .between(0, 65'000)
        .shows_default();
    up_->add("--config", words_.config, "A YAML file of settings for all services").type("FILE");
    up_->add("--lock-ttl", words_.lock_ttl,
             "If a replica dies, others take its locks over after this long; default 10s")
        .type("TIME");
    up_->add("--retry-delays", words_.retry_delays,
             "How long to wait before each retry; default 1s,2s,4s,8s,10s")
        .type("TIMES");
    up_->add("--allow-simulation", words_.simulation,
             "Documents may ask to fail, by \"simulate\" in their metadata");
    up_->footer(
        "Each replica is a process, started again when it dies. Ctrl-C stops all of them;\n"
        "the next 'documents up' goes on where they were. Services serve HTTP on\n"
        "127.0.0.1, their first replicas on ports from --port on: ingestion, validation,\n"
        "enrichment, audit, notification. Logs are in DIR/logs, and what users are sent in\n"
        "DIR/spool.");

    verify_ = program_.add_command("verify", "Whether the databases of all services agree");
    add_places(*verify_);
    verify_->add_time("--wait", words_.wait, "Give what is unfinished so long to come right");
    verify_->add("--redriven", words_.redriven,
                 "Dead letters were redriven: a document may have failed more than once");
    verify_->add("--json", json_, "The result as one JSON object");
    verify_->footer(
        "Exit code 0: every document is in its final state, each event is recorded once, each\n"
        "user was told once of what the rules say, and nothing waits. 1: not so, with why.");

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
      if (!number) return "--replicas: write SERVICE=N, as validation=3, not '" + one + "'";
      if (find_service(name) == nullptr) return "--replicas: there is no service '" + name + "'";
      if (count < 0 || count > kMostReplicas) {
        return "--replicas: from 0 to " + std::to_string(kMostReplicas) + ", not '" + one + "'";
      }
      into.replicas[name] = count;
    }
    return {};
  }

  Program program_;
  Words words_;
  Places places_;
  bool json_ = false;
  std::string correlation_id_;
  std::string known_head_;
  std::map<std::string, std::map<std::string, std::string>> typed_;  // by service and setting
  std::vector<std::pair<std::string, Command>> services_;
  std::optional<Command> up_, verify_, trace_, verify_audit_;
};

}  // namespace

Parsed parse_command_line(const std::vector<std::string>& given) {
  Parser parser;
  const auto understood = parser.understand(given);
  Parsed parsed{.help = understood.help, .wrong = understood.wrong};
  if (!parsed.help.empty() || !parsed.wrong.empty()) return parsed;
  parsed.wrong = parser.fill(parsed.options);
  if (!parsed.wrong.empty()) parsed.wrong += "; see 'documents --help'";
  return parsed;
}

}  // namespace baton::documents
