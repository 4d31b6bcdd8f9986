// What can be typed. CLI11 is only known here: the commands get plain structs.

#include "cli/options.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/options_build.h"
#include "policy/suggest.h"

namespace baton::cli {
namespace {

constexpr const char* kName =
    "SUBJECT[/RESOURCE…], or the text form lock:MODE:SUBJECT:PREDICATE[:…]";

class HelpText final : public CLI::Formatter {
 public:
  // One blank line between two groups is enough.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    for (auto at = help.find("\n\n\n"); at != std::string::npos; at = help.find("\n\n\n", at)) {
      help.erase(at, 1);
    }
    return help;
  }

  // What follows -- is not CLI11's, so its help does not know of it.
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (app->get_name() != "run" && app->get_name() != "elect") return usage;
    usage.erase(usage.find_last_not_of('\n') + 1);
    return usage + " -- CMD [ARG...]\n";
  }
};

void add_run(CLI::App& app, Arguments& all) {
  auto* run_app = add_command(
      &app, "run", "Run a command under a lock",
      "  baton run nightly-report --ttl 1m -- ./report.sh\n"
      "  baton run page/fs-1/doc-7/3 --predicate extracting --wait 30s -- extract 3\n\n"
      "CMD finds BATON_NAME, BATON_TOKEN, BATON_GRANT and BATON_MODE in its environment.\n"
      "Exit code: that of CMD, 128 + N if signal N ended it; 75 if the lock is busy,\n"
      "76 if it was lost, 127 or 126 if CMD cannot be found or executed.");
  auto& run_with = all.run;
  run_app->add_option("NAME", run_with.name, kName)->type_name("")->required();
  run_app
      ->add_option("--mode", run_with.mode,
                   "exclusive (default), shared, update, intent, IS or SIX")
      ->type_name("M");
  run_app->add_option("--predicate", run_with.predicate, "What is done; default holding")
      ->type_name("P");
  run_app->add_option("--ttl", run_with.ttl, "How long the lock outlives a dead holder")
      ->type_name("TIME")
      ->capture_default_str();
  run_app->add_option("--wait", run_with.wait, "How long to wait for it, at most 24h")
      ->type_name("TIME")
      ->capture_default_str();
  run_app
      ->add_option("--at-least-for", run_with.at_least_for,
                   "Stays taken so long even if CMD ends before")
      ->type_name("TIME")
      ->capture_default_str();
  run_app->add_option("--metadata", run_with.metadata, "Said of the holder; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  run_app
      ->add_option("--grace", run_with.grace,
                   "After a loss, from SIGTERM to SIGKILL; never past the end of the lock")
      ->type_name("TIME")
      ->capture_default_str();
  add_metrics(run_app, run_with.metrics);
  add_common(run_app, all);
  run_app->callback([&all] { all.command = [&all](Context& c) { return run(c, all.run); }; });
}

void add_lock_find(CLI::App* lock, Arguments& all) {
  auto* app = add_command(lock, "find", "Find locks that are held or waited for",
                          "  baton lock find\n"
                          "  baton lock find --subject page --resource fs-abc123\n"
                          "  baton lock find --owner web-1:4711 --json");
  auto& find = all.find;
  app->add_option("--subject", find.subject, "Only of this subject")->type_name("S");
  app->add_option("--predicate", find.predicate, "Only held or wanted for this")->type_name("P");
  app->add_option("--mode", find.mode, "Only held or wanted in this mode")->type_name("M");
  app->add_option("--resource", find.resources, "Only below this path, as fs-1 or fs-1/doc-7")
      ->type_name("PREFIX")
      ->allow_extra_args(false);
  app->add_option("--owner", find.holder, "Only held or wanted by this owner")->type_name("WHO");
  app->add_option("--limit", find.limit, "At most so many names")
      ->type_name("N")
      ->capture_default_str();
  add_common(app, all, true, false);
  app->callback([&all] { all.command = [&all](Context& c) { return lock_find(c, all.find); }; });
}

void add_lock(CLI::App& root, Arguments& all) {
  auto* lock = add_noun(root, "lock", "Look at locks, and break them",
                        "  baton lock find --subject page --resource fs-abc123\n"
                        "  baton lock show page/fs-abc123/doc-7/3\n"
                        "  baton lock break nightly-report --reason 'host is gone'");
  add_lock_find(lock, all);

  auto* show = add_command(lock, "show", "Show one lock: holders, queue, note",
                           "  baton lock show page/fs-1/doc-7/3");
  show->add_option("NAME", all.show.name, kName)->type_name("")->required();
  show->add_option("--predicate", all.show.predicate, "For subjects whose scope is the predicate")
      ->type_name("P");
  add_common(show, all);
  show->callback([&all] { all.command = [&all](Context& c) { return lock_show(c, all.show); }; });

  auto* break_app = add_command(
      lock, "break", "Take a lock from its holders",
      "  baton lock break nightly-report --reason 'host is gone'\n\n"
      "Waits until each holder has acknowledged or expired; until then nobody else gets it.");
  break_app->add_option("NAME", all.break_.name, kName)->type_name("")->required();
  break_app
      ->add_option("--predicate", all.break_.predicate, "For subjects whose scope is the predicate")
      ->type_name("P");
  break_app->add_option("--reason", all.break_.reason, "Why; the holder is told")
      ->type_name("TEXT")
      ->required();
  break_app->add_flag("--now", all.break_.now,
                      "Do not wait: the holder may still be writing while the next one starts");
  break_app->add_option("--timeout", all.break_.timeout, "How long to wait; default to the end")
      ->type_name("TIME");
  add_common(break_app, all);
  break_app->callback(
      [&all] { all.command = [&all](Context& c) { return lock_break(c, all.break_); }; });

  auto* stats = add_command(lock, "stats", "Count locks by subject and predicate",
                            "  baton lock stats --top 3");
  stats->add_option("--top", all.stats.top, "So many of the most contended names")
      ->type_name("N")
      ->capture_default_str();
  add_common(stats, all);
  stats->callback(
      [&all] { all.command = [&all](Context& c) { return lock_stats(c, all.stats); }; });
}

void add_database(CLI::App* app, Arguments& all) {
  app->add_option("--database", all.fence.database,
                  "The database of the data: sqlite:PATH or postgres://…")
      ->type_name("URL")
      ->required();
}

void add_fence(CLI::App& root, Arguments& all) {
  auto* fence = add_noun(
      root, "fence", "Keep ex-holders from writing",
      "  baton fence install --database sqlite:shop.db\n"
      "  baton fence check --key \"$BATON_NAME\" \"$BATON_TOKEN\" --database sqlite:shop.db");
  auto* check = add_command(
      fence, "check", "Would a write with this token still be accepted? Records nothing",
      "  baton fence check --key \"$BATON_NAME\" \"$BATON_TOKEN\" --database sqlite:shop.db\n\n"
      "Exit code: 0 if it would, 77 if a newer holder has been there.");
  check->add_option("NAME", all.fence.name, kName)->type_name("")->required();
  check->add_option("TOKEN", all.fence.token, "As in BATON_TOKEN")->type_name("")->required();
  check->add_flag("--key", all.fence.key, "NAME is a key, as in BATON_NAME");
  check->add_option("--mode", all.fence.mode, "The mode it was held in; default exclusive")
      ->type_name("M");
  check->add_option("--predicate", all.fence.predicate, "For subjects whose scope is the predicate")
      ->type_name("P");
  add_database(check, all);
  add_common(check, all);
  check->callback(
      [&all] { all.command = [&all](Context& c) { return fence_check(c, all.fence); }; });

  auto* rebase = add_command(
      fence, "rebase", "After a restore: lift the store's tokens above all that the fence has seen",
      "  baton fence rebase --database postgres://app@db/shop");
  add_database(rebase, all);
  add_common(rebase, all);
  rebase->callback(
      [&all] { all.command = [&all](Context& c) { return fence_rebase(c, all.fence); }; });

  auto* install = add_command(fence, "install", "Make the fence in a database; harmless to repeat",
                              "  baton fence install --database sqlite:shop.db");
  add_database(install, all);
  add_common(install, all, false);
  install->callback(
      [&all] { all.command = [&all](Context& c) { return fence_install(c, all.fence); }; });
}

void add_store(CLI::App& root, Arguments& all) {
  auto* store = add_noun(root, "store", "Look after the store of the locks",
                         "  baton store doctor\n"
                         "  baton store migrate --store postgres://app@db/locks");
  auto* migrate = add_command(store, "migrate", "Make or upgrade its schema; harmless to repeat",
                              "  baton store migrate --store postgres://app@db/locks");
  add_common(migrate, all);
  migrate->callback([&all] { all.command = [](Context& c) { return store_migrate(c); }; });
  auto* status = add_command(store, "status", "Show what and where it is, and its schema",
                             "  baton store status --store redis://db");
  add_common(status, all);
  status->callback([&all] { all.command = [](Context& c) { return store_status(c); }; });
  auto* doctor =
      add_command(store, "doctor", "Say what weakens the promise here, and how to mend it",
                  "  baton store doctor --ttl 5s\n\n"
                  "Exits with 0 if all is well or there is only advice, else with 1.");
  doctor->add_option("--ttl", all.doctor.ttl, "The shortest TTL in use")
      ->type_name("TIME")
      ->capture_default_str();
  add_common(doctor, all);
  doctor->callback(
      [&all] { all.command = [&all](Context& c) { return store_doctor(c, all.doctor); }; });
}

void add_policy(CLI::App& root, Arguments& all) {
  auto* policy = add_noun(
      root, "policy", "Say what may be locked, and how",
      "  baton policy check locks.yaml\n  baton policy apply locks.yaml\n  baton policy show");
  auto* check = add_command(policy, "check", "Read a policy file and say what is wrong with it",
                            "  baton policy check locks.yaml");
  check->add_option("FILE", all.policy.file, "YAML; - is standard input")
      ->type_name("")
      ->required();
  add_common(check, all, false);
  check->callback(
      [&all] { all.command = [&all](Context& c) { return policy_check(c, all.policy); }; });

  auto* apply = add_command(policy, "apply", "Put a policy in force",
                            "  baton policy apply locks.yaml --timeout 5m\n\n"
                            "If it changes who conflicts, nobody can acquire until the holders of "
                            "the\nchanged subjects have gone.");
  apply->add_option("FILE", all.policy.file, "YAML; - is standard input")
      ->type_name("")
      ->required();
  apply->add_option("--timeout", all.policy.timeout, "How long holders may take to go")
      ->type_name("TIME")
      ->capture_default_str();
  apply->add_flag("--replace", all.policy.replace,
                  "Even if the policy in force cannot be read; waits for all locks to go");
  add_common(apply, all);
  apply->callback(
      [&all] { all.command = [&all](Context& c) { return policy_apply(c, all.policy); }; });

  auto* show = add_command(policy, "show", "Show the policy in force, as YAML",
                           "  baton policy show > locks.yaml");
  add_common(show, all);
  show->callback([&all] { all.command = [](Context& c) { return policy_show(c); }; });
}

void add_rest(CLI::App& root, Arguments& all) {
  auto* version_app = add_command(&root, "version", "Show the version", "  baton version --json");
  add_common(version_app, all, false);
  version_app->callback([&all] { all.command = [](Context& c) { return version(c); }; });
  auto* completion_app = add_command(&root, "completion", "Print a completion script",
                                     "  source <(baton completion bash)");
  completion_app->add_option("SHELL", all.shell, "bash, zsh or fish")->type_name("")->required();
  add_common(completion_app, all, false);
  completion_app->callback(
      [&all] { all.command = [&all](Context& c) { return completion(c, all.shell); }; });
}

void describe(CLI::App& root, Arguments& all) {
  auto help = std::make_shared<HelpText>();
  help->column_width(28);
  help->label("REQUIRED", "");
  help->label("SUBCOMMAND", "COMMAND");
  root.formatter(help);
  root.require_subcommand(1);
  root.footer(
      "Examples:\n"
      "  baton run nightly-report --ttl 1m -- ./report.sh    on every machine; one runs it\n"
      "  baton elect outbox -- ./publisher                   on every machine; the leader runs it\n"
      "  baton lock find --subject page                      who holds what\n\n"
      "The store is --store, $BATON_STORE, 'store:' in baton.yaml (here or in\n"
      "$XDG_CONFIG_HOME/baton), or else a file of your own in $XDG_STATE_HOME/baton.");
  root.get_help_ptr()->group(kCommonOptions);
  add_common(&root, all);  // before the command or behind it, as one is used to
  add_run(root, all);
  add_elect(root, all);
  add_leader(root, all);
  add_lock(root, all);
  add_fence(root, all);
  add_store(root, all);
  add_policy(root, all);
  add_job(root, all);
  add_node(root, all);
  add_rest(root, all);
}

// The command as far as it was understood, and the word that was not, if that was the problem.
struct Reached {
  CLI::App* app;
  std::string path = "baton";
  std::string unknown;
};

Reached reached(CLI::App& root, const std::vector<std::string>& words) {
  Reached at{&root};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--store" || word == "--region" || word == "--owner") ++i;  // and its value
    if (word.starts_with("-")) continue;
    const auto children = at.app->get_subcommands([](CLI::App*) { return true; });
    if (children.empty()) break;
    const auto next = std::find_if(children.begin(), children.end(),
                                   [&](CLI::App* child) { return child->get_name() == word; });
    if (next == children.end()) {
      at.unknown = word;
      break;
    }
    at.app = *next;
    at.path += " " + word;
  }
  return at;
}

template <typename Texts>
std::string unknown(std::string_view what, const std::string& word, const Texts& known) {
  return policy::unknown_word(what, word,
                              std::vector<std::string_view>(known.begin(), known.end()));
}

// The first option that the command does not have, if any.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const auto& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!word.starts_with("--")) continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return unknown("option", name, known);
    }
  }
  return {};
}

std::string usage_message(CLI::App& root, const std::vector<std::string>& words,
                          const CLI::ParseError& problem) {
  const Reached at = reached(root, words);
  std::vector<std::string> names;
  for (const auto* child : at.app->get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(child->get_name());
  }
  std::string message = problem.what();
  if (!at.unknown.empty()) {
    message = unknown("command", at.unknown, names);
  } else if (auto option = unknown_option(*at.app, words); !option.empty()) {
    message = std::move(option);
  } else if (!names.empty()) {
    message = "say what to do:";
    for (const auto& name : names) message += " " + name;
  } else if (message.size() > 1 && std::islower(static_cast<unsigned char>(message[1])) != 0) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message + (message.ends_with('?') ? " See '" : "; see '") + at.path + " --help'";
}

}  // namespace

Parsed parse(std::vector<std::string> words, Arguments& all) {
  // What follows -- is the user's command, and none of CLI11's business.
  if (const auto dashes = std::find(words.begin(), words.end(), "--"); dashes != words.end()) {
    all.run.command.assign(dashes + 1, words.end());
    all.elect.command = all.run.command;
    words.erase(dashes, words.end());
  }
  all.json = std::find(words.begin(), words.end(), "--json") != words.end();
  CLI::App root("Of all the replicas of a service, exactly one does each piece of work.", "baton");
  describe(root, all);
  try {
    auto reversed = words;  // CLI11 takes its words from the end
    std::reverse(reversed.begin(), reversed.end());
    root.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return {.help = root.help()};
  } catch (const CLI::ParseError& problem) {
    return {.usage_error = usage_message(root, words, problem)};
  }
  return {};
}

}  // namespace baton::cli
