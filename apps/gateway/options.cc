#include "apps/gateway/options.h"

#include <charconv>

#include "apps/common/options.h"
#include "baton/store.h"

namespace baton::gateway {
namespace {

using apps::Time;
using command_line::Command;
using command_line::Program;

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

void add_manual(Program& program) {
  program.manual({"NAME", {{"", "turn signals into workflow executions, each once"}}});
  program.manual({"ENVIRONMENT",
                  {{"BATON_STORE", "Where the locks are, if --store is not given."},
                   {"BATON_GATEWAY_TOKEN",
                    "What clients must send as bearer token, if --token-file is not "
                    "given."}}});
}

// As they are typed.
struct Words {
  std::string listen;
  std::string store;
  std::string objects = "sqlite:gateway.db";
  std::string owner;
  std::string ttl = "30s";
  std::string wait = "10s";
  std::string requeue = "100ms";
  std::string keep = "168h";
  std::string grace = "15s";
  std::size_t workers = 8;
  std::size_t max_connections = 1024;
  std::size_t max_body = 1U << 20U;
  std::size_t max_pending = 512;
  std::string token_file;
  apps::LogWords log;
};

void add_common(Command app, Words& words, const char* listen) {
  app.add("--listen", words.listen, "Where to serve HTTP; port 0 takes any free one")
      .type("IP:PORT")
      .shows_default(listen);
  app.add("--store", words.store,
          "Where the locks are: sqlite:PATH, postgres://…, k8s://…; default $BATON_STORE, else "
          "sqlite:gateway.db")
      .type("URL")
      .not_empty("name a store, or leave the option out");
  app.add("--objects", words.objects, "Where the objects are: sqlite:PATH, postgres://…, k8s://…")
      .type("URL")
      .shows_default();
  app.add("--owner", words.owner, "Who we are, for people; default HOST:PID").type("WHO");
  app.add_time("--ttl", words.ttl,
               "Lease time: if a service dies, its locks are freed after this long");
  app.add_time("--grace", words.grace, "How long requests may take to finish after SIGTERM");
  app.add("--workers", words.workers, "Threads for requests that block")
      .type("N")
      .between(1, 256)
      .shows_default();
  app.add("--max-connections", words.max_connections,
          "With more, idle ones are closed; if none is idle, the answer is 503")
      .type("N")
      .between(1, 100'000)
      .shows_default();
  app.add("--max-pending", words.max_pending,
          "Requests that wait for a lock or a worker; more are answered 429")
      .type("N")
      .between(1, 100'000)
      .shows_default();
  app.add("--max-body", words.max_body, "Larger bodies are answered 413")
      .type("BYTES")
      .between(1024, 16 << 20)
      .shows_default();
  app.add("--token-file", words.token_file,
          "Clients must send the first line of this file as bearer token; default "
          "$BATON_GATEWAY_TOKEN, else none is needed")
      .type("PATH");
  apps::add_log(app, words.log);
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

std::string understand(const Words& words, const std::string& listen, Options& options) {
  if (!read_listen(words.listen.empty() ? listen : words.listen, options)) {
    return "--listen: write IP:PORT, as 127.0.0.1:8080";
  }
  const Millis day = std::chrono::hours(24);
  auto wrong =
      apps::read_times({Time{"--ttl", words.ttl, Millis(500), kMaxTtl, options.ttl},
                        Time{"--wait", words.wait, Millis(100), Millis(60'000), options.wait},
                        Time{"--requeue", words.requeue, Millis(10), day, options.requeue},
                        Time{"--keep", words.keep, Millis(1000), Millis::max(), options.keep},
                        Time{"--grace", words.grace, Millis(0), day, options.grace}});
  if (wrong.empty()) wrong = apps::read_log(words.log, options.log_format, options.log_level);
  if (!wrong.empty()) return wrong;
  options.store = apps::store_or(words.store, "sqlite:gateway.db");
  options.objects = words.objects;
  options.owner = words.owner;
  options.workers = words.workers;
  options.max_connections = words.max_connections;
  options.max_body = words.max_body;
  options.max_pending = words.max_pending;
  options.token_file = words.token_file;
  return {};
}

}  // namespace

Parsed parse_command_line(const std::vector<std::string>& given) {
  Words words;
  Program program("baton-gateway", kAbout);
  program.footer(kExamples);
  add_manual(program);
  const char* signals_listen = "127.0.0.1:8080";
  const char* orchestrator_listen = "127.0.0.1:8081";
  auto signals = program.add_command(
      "signals", "Take signals: POST /signals, and /alertmanager for Prometheus",
      "  baton-gateway signals --listen 0.0.0.0:8080 --store postgres://baton@db/locks\n"
      "  baton-gateway signals --listen 127.0.0.1:0 --store sqlite:locks.db "
      "--objects sqlite:objects.db\n"
      "  baton-gateway signals --store k8s://shop --objects k8s://shop");
  add_common(signals, words, signals_listen);
  signals.add_time("--wait", words.wait, "How long a signal waits for its lock, at most 1m");
  auto orchestrator = program.add_command(
      "orchestrator", "Start workflow executions",
      "  baton-gateway orchestrator --requeue 100ms\n"
      "  curl -d '{\"phase\": \"Completed\"}' http://127.0.0.1:8081/executions/NAME/finish");
  add_common(orchestrator, words, orchestrator_listen);
  orchestrator.add_time("--requeue", words.requeue, "When to look at a busy target again");
  orchestrator.add_time("--keep", words.keep,
                        "How long to keep requests and executions that have ended");

  const auto understood = program.understand(given);
  Parsed parsed{.help = understood.help, .wrong = understood.wrong};
  if (!parsed.help.empty() || !parsed.wrong.empty()) return parsed;
  const bool takes_signals = signals.given();
  parsed.options.service =
      takes_signals ? Options::Service::signals : Options::Service::orchestrator;
  parsed.wrong =
      understand(words, takes_signals ? signals_listen : orchestrator_listen, parsed.options);
  if (!parsed.wrong.empty()) parsed.wrong += "; see 'baton-gateway --help'";
  return parsed;
}

}  // namespace baton::gateway
