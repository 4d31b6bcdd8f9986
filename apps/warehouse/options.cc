#include "apps/warehouse/options.h"

#include <random>

#include "apps/common/options.h"
#include "baton/store.h"

namespace baton::warehouse {
namespace {

using apps::Time;
using command_line::Command;
using command_line::Program;

constexpr const char* kAbout =
    "Observers of orders, inventory and warehouse tasks: every node runs them all, each type is\n"
    "polled by one node at a time, and every row of the source becomes one event, with one effect\n"
    "at those who consume it.";
constexpr const char* kExamples =
    "Examples:\n"
    "  warehouse generate --rate 100 --seconds 60 &\n"
    "  warehouse node --node a --log text &\n"
    "  warehouse node --node b --log text &\n"
    "  warehouse count --log text &\n"
    "  warehouse verify --wait 2m\n"
    "'warehouse node --help' shows the options of a node.";

void add_manual(Program& program) {
  program.manual({"NAME", {{"", "observe orders, inventory and tasks; each row is one event"}}});
  program.manual({"ENVIRONMENT",
                  {{"BATON_STORE", "Where the locks are, if --store is not given."},
                   {"BATON_BROKER", "Where events are published, if --broker is not given."}}});
}

// As they are typed.
struct Words {
  std::string config;
  std::vector<std::string> sources;
  std::string store;
  std::string data = "sqlite:warehouse-data.db";
  std::string broker;
  std::string effects = "sqlite:warehouse-effects.db";
  std::string node;
  std::string node_ttl = "10s";
  std::string poll_takes = "0s";
  std::string grace = "10s";
  std::string metrics;
  apps::LogWords log;
  double rate = 100;
  double seconds = 10;
  std::string late = "1s";
  std::string tick = "10ms";
  int writers = 3;
  std::uint64_t seed = 0;
  std::string wait = "0s";
  bool json = false;
};

void text(Command app, const char* name, std::string& into, const char* about, const char* type) {
  auto option = app.add(name, into, about);
  option.type(type).last_counts();
  if (!into.empty()) option.shows_default();
}

void add_common(Command app, Words& words) {
  text(app, "--config", words.config, "warehouse.yaml; default: three types, see docs", "FILE");
  app.add("--source", words.sources,
          "What is polled: sqlite:PATH or postgres://…; of one type: TYPE=URL; may be "
          "repeated; default sqlite:warehouse-source.db")
      .type("[TYPE=]URL")
      .one_value_a_time();
}

void add_metrics(Command app, Words& words) {
  text(app, "--metrics", words.metrics, "Serve /metrics there; port 0 takes any free one",
       "IP:PORT");
}

void add_broker(Command app, Words& words) {
  text(app, "--broker", words.broker,
       "Where events are published: rabbitmq://… or embedded:PATH; default $BATON_BROKER, else "
       "embedded:warehouse-broker.db",
       "URL");
}

void add_node(Command app, Words& words) {
  add_common(app, words);
  text(app, "--store", words.store,
       "Where the locks are: sqlite:PATH, postgres://…; default $BATON_STORE, else "
       "sqlite:warehouse.db",
       "URL");
  text(app, "--data", words.data, "Where observers and outbox are: sqlite:PATH or postgres://…",
       "URL");
  add_broker(app, words);
  text(app, "--node", words.node, "Who we are, unique; default HOST:PID", "ID");
  add_metrics(app, words);
  apps::add_log(app, words.log);
  text(app, "--node-ttl", words.node_ttl,
       "When a node that has died is gone from the list, and others publish for it", "TIME");
  text(app, "--grace", words.grace, "How long polls may take to finish after SIGTERM", "TIME");
  text(app, "--poll-takes", words.poll_takes,
       "Wait so long between reading rows and writing them, to see what happens then", "TIME");
  app.footer(
      "Examples:\n"
      "  warehouse node --config warehouse.yaml --node a --metrics 127.0.0.1:9101\n"
      "  warehouse node --store postgres://baton@db/locks --data postgres://app@db/shop \\\n"
      "    --source postgres://reader@erp/erp --source wes=sqlite:/var/lib/wes/tasks.db");
}

void add_count(Command app, Words& words) {
  add_broker(app, words);
  text(app, "--effects", words.effects, "Where events are counted: sqlite:PATH or postgres://…",
       "URL");
  text(app, "--node", words.node, "Which replica this is; default: the process id", "ID");
  add_metrics(app, words);
  apps::add_log(app, words.log);
  app.footer(
      "Example:\n"
      "  warehouse count --broker rabbitmq://counter@mq/shop --effects "
      "postgres://counter@db/counts");
}

void add_generate(Command app, Words& words) {
  add_common(app, words);
  app.add("--rate", words.rate, "Rows a second, over all types")
      .type("N")
      .between(0.1, 100'000.0)
      .shows_default();
  app.add("--seconds", words.seconds, "For how long")
      .type("S")
      .between(0.1, 86'400.0)
      .shows_default();
  text(app, "--late", words.late, "A row becomes visible at most so long after its time", "TIME");
  text(app, "--tick", words.tick, "Times are multiples of this: rows of one tick have the same",
       "TIME");
  app.add("--writers", words.writers, "Of each type, at the same time")
      .type("N")
      .between(1, 64)
      .shows_default();
  app.add("--seed", words.seed, "Of the random numbers; default: another each time").type("N");
  app.footer("Example:\n  warehouse generate --rate 500 --seconds 30 --late 2s");
}

void add_verify(Command app, Words& words) {
  add_common(app, words);
  text(app, "--data", words.data, "Where observers and outbox are: sqlite:PATH or postgres://…",
       "URL");
  text(app, "--effects", words.effects, "Where events are counted: sqlite:PATH or postgres://…",
       "URL");
  text(app, "--wait", words.wait, "Give nodes and counters so long to come to what is missing",
       "TIME");
  app.add("--json", words.json, "The figures as one JSON object");
  app.footer(
      "Exits 0 if every source row was observed exactly once, and every event counted exactly "
      "once; "
      "1 if not.\n"
      "Example:\n  warehouse verify --wait 1m --json");
}

std::string read_times(const Words& words, Options& options) {
  const Millis day = std::chrono::hours(24);
  return apps::read_times(
      {Time{"--node-ttl", words.node_ttl, Millis(500), kMaxTtl, options.node.node_ttl},
       Time{"--grace", words.grace, Millis(0), day, options.node.grace},
       Time{"--poll-takes", words.poll_takes, Millis(0), day, options.node.poll_takes},
       Time{"--late", words.late, Millis(0), day, options.generator.late},
       Time{"--tick", words.tick, Millis(0), day, options.generator.tick},
       Time{"--wait", words.wait, Millis(0), day, options.verify_wait}});
}

std::string understand(const Words& words, Options& options) {
  auto config = read_config(words.config);
  if (!config) return config.error().message;
  options.config = std::move(*config);
  for (const std::string& source : words.sources) {
    if (auto ok = set_source(options.config, source); !ok) return "--source: " + ok.error().message;
  }
  auto wrong = read_times(words, options);
  if (wrong.empty()) {
    wrong = apps::read_log(words.log, options.node.log_format, options.node.log_level);
  }
  if (!wrong.empty()) return wrong;
  options.node.store = apps::store_or(words.store, "sqlite:warehouse.db");
  options.node.data = words.data;
  options.node.broker = apps::broker_or(words.broker, "embedded:warehouse-broker.db");
  options.counter = {.broker = options.node.broker,
                     .effects = words.effects,
                     .node = words.node,
                     .metrics = words.metrics,
                     .log_format = options.node.log_format,
                     .log_level = options.node.log_level};
  options.node.node = words.node;
  options.node.metrics = words.metrics;
  options.generator.rate = words.rate;
  options.generator.duration = Millis(static_cast<std::int64_t>(words.seconds * 1000));
  options.generator.writers = words.writers;
  options.generator.seed = words.seed != 0 ? words.seed : std::random_device()();
  options.json = words.json;
  return {};
}

}  // namespace

Parsed parse_command_line(const std::vector<std::string>& given) {
  Words words;
  Program program("warehouse", kAbout);
  program.footer(kExamples);
  add_manual(program);
  auto node = program.add_command("node", "Run a node: poll all observers, with all other nodes");
  add_node(node, words);
  auto count = program.add_command("count", "Consume the events: count each once");
  add_count(count, words);
  auto generate = program.add_command("generate", "Write rows into the source, as others would");
  add_generate(generate, words);
  auto verify = program.add_command(
      "verify", "Compare the source with the events, and those with the counts");
  add_verify(verify, words);

  const auto understood = program.understand(given);
  Parsed parsed{.help = understood.help, .wrong = understood.wrong};
  if (!parsed.help.empty() || !parsed.wrong.empty()) return parsed;
  using Do = Options::Command;
  parsed.options.command = node.given()     ? Do::node
                           : count.given()  ? Do::count
                           : verify.given() ? Do::verify
                                            : Do::generate;
  parsed.wrong = understand(words, parsed.options);
  if (!parsed.wrong.empty()) parsed.wrong += "; see 'warehouse --help'";
  return parsed;
}

}  // namespace baton::warehouse
