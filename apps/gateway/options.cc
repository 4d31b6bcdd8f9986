#include "apps/gateway/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <CLI/CLI.hpp>

#include "baton/store.h"
#include "policy/duration.h"

namespace baton::gateway {
namespace {

constexpr const char* kAbout =
    "Turns signals into remediation requests and those into workflow executions: one for each\n"
    "fingerprint and one for each target at a time, however many replicas run.";
constexpr const char* kExamples =
    "Examples:\n"
    "  baton-gateway signals\n"
    "  baton-gateway orchestrator\n"
    "  curl -d '{\"alertName\": \"HighMemory\", \"resource\": {\"kind\": \"Node\", \"name\": "
    "\"worker-1\"}}' \\\n"
    "    http://127.0.0.1:8080/signals\n"
    "'baton-gateway signals --help' shows the options.";

// As they are typed.
struct Words {
  std::string listen;
  std::string store;  // no default here: that of the environment may have a password
  std::string objects = "sqlite:gateway.db";
  std::string owner;
  std::string ttl = "30s";
  std::string wait = "10s";
  std::string requeue = "100ms";
  std::string keep = "168h";
  std::string grace = "15s";
  std::size_t workers = 8;
  std::size_t max_connections = 1024;
  std::string log = "json";
  std::string log_level = "info";
};

void add_common(CLI::App* app, Words& words, const char* listen) {
  app->add_option("--listen", words.listen, "Where to serve HTTP; port 0 takes any free one")
      ->type_name("IP:PORT")
      ->default_str(listen);
  app->add_option(
         "--store", words.store,
         "Where the locks are: sqlite:PATH, postgres://…, k8s://…; default $BATON_STORE, else "
         "sqlite:gateway.db")
      ->type_name("URL");
  app->add_option("--objects", words.objects, "Where the objects are: sqlite:PATH, k8s://…")
      ->type_name("URL")
      ->capture_default_str();
  app->add_option("--owner", words.owner, "Who we are, for people; default HOST:PID")
      ->type_name("WHO");
  app->add_option("--ttl", words.ttl, "How long a lock outlives a service that has died")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--grace", words.grace, "How long requests may take to finish after SIGTERM")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--workers", words.workers, "Threads for what blocks")
      ->type_name("N")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app->add_option("--max-connections", words.max_connections, "More are answered 503")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app->add_option("--log", words.log, "How to log on stdout: json, or text for people")
      ->type_name("FORMAT")
      ->capture_default_str();
  app->add_option("--log-level", words.log_level, "From which level: debug, info, warn or error")
      ->type_name("LEVEL")
      ->capture_default_str();
}

bool read_listen(const std::string& text, Options& options) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  options.address = text.substr(0, colon);
  if (options.address.size() > 2 && options.address.front() == '[') {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, options.port);
  return read.ec == std::errc() && read.ptr == end && !options.address.empty();
}

std::string default_store() {
  const char* store = std::getenv("BATON_STORE");
  return store != nullptr && *store != '\0' ? store : "sqlite:gateway.db";
}

struct Time {
  const char* option;
  const std::string& text;
  Millis least;
  Millis most;
  Millis& into;
};

std::string understand(const Words& words, const std::string& listen, Options& options) {
  if (!read_listen(words.listen.empty() ? listen : words.listen, options)) {
    return "--listen: write IP:PORT, as 127.0.0.1:8080";
  }
  const Millis day = std::chrono::hours(24);
  for (const Time& time : {Time{"--ttl", words.ttl, Millis(500), kMaxTtl, options.ttl},
                           Time{"--wait", words.wait, Millis(100), Millis(60'000), options.wait},
                           Time{"--requeue", words.requeue, Millis(10), day, options.requeue},
                           Time{"--keep", words.keep, Millis(1000), Millis::max(), options.keep},
                           Time{"--grace", words.grace, Millis(0), day, options.grace}}) {
    const auto read = policy::parse_duration(time.text);
    if (!read) return std::string(time.option) + ": " + read.error().message;
    if (*read < time.least || *read > time.most) {
      return std::string(time.option) + ": " + time.text + " is out of range";
    }
    time.into = *read;
  }
  const auto format = observe::parse_log_format(words.log);
  if (!format) return "--log: json or text, not '" + words.log + "'";
  options.log_format = *format;
  const auto level = observe::parse_log_level(words.log_level);
  if (!level) return "--log-level: debug, info, warn or error, not '" + words.log_level + "'";
  options.log_level = *level;
  options.store = words.store.empty() ? default_store() : words.store;
  options.objects = words.objects;
  options.owner = words.owner;
  options.workers = words.workers;
  options.max_connections = words.max_connections;
  return {};
}

}  // namespace

Parsed parse_command_line(const std::vector<std::string>& given) {
  Words words;
  CLI::App root(kAbout, "baton-gateway");
  root.require_subcommand(1);
  root.footer(kExamples);
  const char* signals_listen = "127.0.0.1:8080";
  const char* orchestrator_listen = "127.0.0.1:8081";
  auto* signals = root.add_subcommand("signals", "Take signals: POST /signals");
  add_common(signals, words, signals_listen);
  signals->add_option("--wait", words.wait, "How long a signal waits for its lock, at most 1m")
      ->type_name("TIME")
      ->capture_default_str();
  signals->footer(
      "Examples:\n"
      "  baton-gateway signals --listen 0.0.0.0:8080 --store postgres://baton@db/locks\n"
      "  baton-gateway signals --listen 127.0.0.1:0 --store sqlite:locks.db "
      "--objects sqlite:objects.db\n"
      "  baton-gateway signals --store k8s://shop --objects k8s://shop");
  auto* orchestrator = root.add_subcommand("orchestrator", "Start workflow executions");
  add_common(orchestrator, words, orchestrator_listen);
  orchestrator->add_option("--requeue", words.requeue, "When to look at a busy target again")
      ->type_name("TIME")
      ->capture_default_str();
  orchestrator->add_option("--keep", words.keep, "How long to remember what has ended")
      ->type_name("TIME")
      ->capture_default_str();
  orchestrator->footer(
      "Examples:\n"
      "  baton-gateway orchestrator --requeue 100ms\n"
      "  curl -d '{\"phase\": \"Completed\"}' http://127.0.0.1:8081/executions/NAME/finish");

  Parsed parsed;
  try {
    auto reversed = given;  // CLI11 takes its words from the end
    std::reverse(reversed.begin(), reversed.end());
    root.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    parsed.help = root.help();
    return parsed;
  } catch (const CLI::RequiredError&) {
    parsed.wrong = "say which service: signals or orchestrator";
    return parsed;
  } catch (const CLI::ParseError& problem) {
    parsed.wrong = problem.what();
    return parsed;
  }
  const bool takes_signals = signals->parsed();
  parsed.options.service =
      takes_signals ? Options::Service::signals : Options::Service::orchestrator;
  parsed.wrong =
      understand(words, takes_signals ? signals_listen : orchestrator_listen, parsed.options);
  return parsed;
}

}  // namespace baton::gateway
