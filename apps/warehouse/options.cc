#include "apps/warehouse/options.h"

#include <algorithm>
#include <cstdlib>
#include <random>

#include <CLI/CLI.hpp>

#include "baton/store.h"
#include "policy/duration.h"

namespace baton::warehouse {
namespace {

constexpr const char* kAbout =
    "Observers of orders, inventory and warehouse tasks: every node runs them all, each type is\n"
    "polled by one node at a time, and every row of the source becomes one event.";
constexpr const char* kExamples =
    "Examples:\n"
    "  warehouse generate --rate 100 --seconds 60 &\n"
    "  warehouse node --node a --log text &\n"
    "  warehouse node --node b --log text &\n"
    "  warehouse verify --wait 2m\n"
    "'warehouse node --help' shows the options of a node.";

// As they are typed.
struct Words {
  std::string config;
  std::vector<std::string> sources;
  std::string store;  // no default here: that of the environment may have a password
  std::string data = "sqlite:warehouse-data.db";
  std::string node;
  std::string node_ttl = "10s";
  std::string poll_takes = "0s";
  std::string grace = "10s";
  std::string metrics;
  std::string log = "json";
  std::string log_level = "info";
  double rate = 100;
  double seconds = 10;
  std::string late = "1s";
  std::string tick = "10ms";
  int writers = 3;
  std::uint64_t seed = 0;
  std::string wait = "0s";
  bool json = false;
};

CLI::Option* text(CLI::App* app, const char* name, std::string& into, const char* about,
                  const char* type) {
  auto* option = app->add_option(name, into, about)->type_name(type)->take_last();
  if (!into.empty()) option->capture_default_str();
  return option;
}

void add_common(CLI::App* app, Words& words) {
  text(app, "--config", words.config, "warehouse.yaml; default: three types, see docs", "FILE");
  app->add_option("--source", words.sources,
                  "What is polled: sqlite:PATH or postgres://…; of one type: TYPE=URL; may be "
                  "repeated; default sqlite:warehouse-source.db")
      ->type_name("[TYPE=]URL")
      ->expected(1)
      ->take_all();
}

void add_node(CLI::App* app, Words& words) {
  add_common(app, words);
  text(app, "--store", words.store,
       "Where the locks are: sqlite:PATH, postgres://…; default $BATON_STORE, else "
       "sqlite:warehouse.db",
       "URL");
  text(app, "--data", words.data, "Where observers and outbox are: sqlite:PATH or postgres://…",
       "URL");
  text(app, "--node", words.node, "Who we are, unique; default HOST:PID", "ID");
  text(app, "--metrics", words.metrics, "Serve /metrics there; port 0 takes any free one",
       "IP:PORT");
  text(app, "--log", words.log, "How to log on stdout: json, or text for people", "FORMAT");
  text(app, "--log-level", words.log_level, "From which level: debug, info, warn or error",
       "LEVEL");
  text(app, "--node-ttl", words.node_ttl, "When a node that has died is gone from the list",
       "TIME");
  text(app, "--grace", words.grace, "How long polls may take to finish after SIGTERM", "TIME");
  text(app, "--poll-takes", words.poll_takes,
       "Wait so long between reading rows and writing them, to see what happens then", "TIME");
  app->footer(
      "Examples:\n"
      "  warehouse node --config warehouse.yaml --node a --metrics 127.0.0.1:9101\n"
      "  warehouse node --store postgres://baton@db/locks --data postgres://app@db/shop \\\n"
      "    --source postgres://reader@erp/erp --source wes=sqlite:/var/lib/wes/tasks.db");
}

void add_generate(CLI::App* app, Words& words) {
  add_common(app, words);
  app->add_option("--rate", words.rate, "Rows a second, over all types")
      ->type_name("N")
      ->check(CLI::Range(0.1, 100'000.0))
      ->capture_default_str();
  app->add_option("--seconds", words.seconds, "For how long")
      ->type_name("S")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str();
  text(app, "--late", words.late, "A row becomes visible at most so long after its time", "TIME");
  text(app, "--tick", words.tick, "Times are multiples of this: rows of one tick have the same",
       "TIME");
  app->add_option("--writers", words.writers, "Of each type, at the same time")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--seed", words.seed, "Of the random numbers; default: another each time")
      ->type_name("N");
  app->footer("Example:\n  warehouse generate --rate 500 --seconds 30 --late 2s");
}

void add_verify(CLI::App* app, Words& words) {
  add_common(app, words);
  text(app, "--data", words.data, "Where observers and outbox are: sqlite:PATH or postgres://…",
       "URL");
  text(app, "--wait", words.wait, "Give nodes so long to observe what is missing", "TIME");
  app->add_flag("--json", words.json, "The figures as one JSON object");
  app->footer(
      "Exits 0 if every source row was observed exactly once, 1 if not.\n"
      "Example:\n  warehouse verify --wait 1m --json");
}

std::string default_store() {
  const char* store = std::getenv("BATON_STORE");
  return store != nullptr && *store != '\0' ? store : "sqlite:warehouse.db";
}

struct Time {
  const char* option;
  const std::string& text;
  Millis least;
  Millis most;
  Millis& into;
};

std::string read_times(const Words& words, Options& options) {
  const Millis day = std::chrono::hours(24);
  for (const Time& time :
       {Time{"--node-ttl", words.node_ttl, Millis(500), kMaxTtl, options.node.node_ttl},
        Time{"--grace", words.grace, Millis(0), day, options.node.grace},
        Time{"--poll-takes", words.poll_takes, Millis(0), day, options.node.poll_takes},
        Time{"--late", words.late, Millis(0), day, options.generator.late},
        Time{"--tick", words.tick, Millis(0), day, options.generator.tick},
        Time{"--wait", words.wait, Millis(0), day, options.verify_wait}}) {
    const auto read = policy::parse_duration(time.text);
    if (!read) return std::string(time.option) + ": " + read.error().message;
    if (*read < time.least || *read > time.most) {
      return std::string(time.option) + ": " + time.text + " is out of range";
    }
    time.into = *read;
  }
  return {};
}

std::string understand(const Words& words, Options& options) {
  auto config = read_config(words.config);
  if (!config) return config.error().message;
  options.config = std::move(*config);
  for (const std::string& source : words.sources) {
    if (auto ok = set_source(options.config, source); !ok) return "--source: " + ok.error().message;
  }
  if (auto wrong = read_times(words, options); !wrong.empty()) return wrong;
  const auto format = observe::parse_log_format(words.log);
  if (!format) return "--log: json or text, not '" + words.log + "'";
  options.node.log_format = *format;
  const auto level = observe::parse_log_level(words.log_level);
  if (!level) return "--log-level: debug, info, warn or error, not '" + words.log_level + "'";
  options.node.log_level = *level;
  options.node.store = words.store.empty() ? default_store() : words.store;
  options.node.data = words.data;
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
  CLI::App root(kAbout, "warehouse");
  root.require_subcommand(1);
  root.footer(kExamples);
  auto* node = root.add_subcommand("node", "Run a node: poll all observers, with all other nodes");
  add_node(node, words);
  auto* generate = root.add_subcommand("generate", "Write rows into the source, as others would");
  add_generate(generate, words);
  auto* verify = root.add_subcommand("verify", "Compare the source with what was published");
  add_verify(verify, words);

  Parsed parsed;
  try {
    auto reversed = given;  // CLI11 takes its words from the end
    std::reverse(reversed.begin(), reversed.end());
    root.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    parsed.help = root.help();
    return parsed;
  } catch (const CLI::RequiredError&) {
    parsed.wrong = "say what to do: node, generate or verify";
    return parsed;
  } catch (const CLI::ParseError& problem) {
    parsed.wrong = problem.what();
    return parsed;
  }
  using Command = Options::Command;
  parsed.options.command =
      node->parsed() ? Command::node : (verify->parsed() ? Command::verify : Command::generate);
  parsed.wrong = understand(words, parsed.options);
  return parsed;
}

}  // namespace baton::warehouse
