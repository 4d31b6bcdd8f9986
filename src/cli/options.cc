// The command line: which commands and options there are. The commands get plain structs.

#include "cli/options.h"

#include <algorithm>

#include "cli/options_build.h"

namespace baton::cli {
namespace {

void add_find_limits(Command app, Arguments& all) {
  app.add("--limit", all.find.limit, "Show at most N names").type("N").shows_default();
  app.add("--watch", all.find.watch, "Go on and show what changes, until Ctrl-C");
}

void add_lock_find(Command lock, Arguments& all) {
  auto app = lock.add_command("find", "Find locks that are held or waited for",
                              "  baton lock find\n"
                              "  baton lock find page/fs-abc123\n"
                              "  baton lock find --owner web-1:4711 --json\n"
                              "  baton lock find --watch");
  auto& find = all.find;
  app.add("NAME", find.name, "Only this name and all below it").type("");
  app.add("--subject", find.subject, "Only of this subject").type("S");
  app.add("--predicate", find.predicate, "Only held or wanted for this").type("P");
  app.add("--mode", find.mode, "Only held or wanted in this mode").type("M");
  app.add("--resource", find.resources, "Only below this path, as fs-1 or fs-1/doc-7")
      .type("PREFIX")
      .one_value_a_time();
  app.add("--owner", find.holder, "Only held or wanted by this owner").type("WHO");
  add_find_limits(app, all);
  add_common(app, all, true, false);
  does(app, all, lock_find, all.find);

  auto list = lock.add_command("list", "List all locks, as 'lock find' does without a filter",
                               "  baton lock list");
  add_find_limits(list, all);
  add_common(list, all, true, false);
  does(list, all, lock_find, all.find);
}

void add_lock(Command& root, Arguments& all) {
  auto lock = root.add_noun("lock", "Look at locks, and break them",
                            "  baton lock list\n"
                            "  baton lock show page/fs-abc123/doc-7/3\n"
                            "  baton lock break nightly-report --reason 'host is gone'");
  add_lock_find(lock, all);

  auto show = lock.add_command("show", "Show one lock: holders, queue, note",
                               "  baton lock show page/fs-1/doc-7/3");
  show.add("NAME", all.show.name, kName).type("").required();
  show.add("--predicate", all.show.predicate, "For subjects whose scope is the predicate")
      .type("P");
  add_common(show, all);
  does(show, all, lock_show, all.show);

  auto break_app = lock.add_command(
      "break", "Take a lock from its holders",
      "  baton lock break nightly-report --reason 'host is gone'\n\n"
      "Waits until each holder has acknowledged or expired; until then nobody else\n"
      "gets it.");
  break_app.add("NAME", all.break_.name, kName).type("").required();
  break_app.add("--predicate", all.break_.predicate, "For subjects whose scope is the predicate")
      .type("P");
  break_app.add("--reason", all.break_.reason, "Why; the holder is told").type("TEXT").required();
  break_app.add("--now", all.break_.now,
                "Do not wait: the holder may still be writing while the next one starts");
  break_app.add("--timeout", all.break_.timeout, "How long to wait; default to the end")
      .type("TIME");
  add_common(break_app, all);
  does(break_app, all, lock_break, all.break_);

  auto forget =
      lock.add_command("forget", "Remove what the store keeps of a damaged lock",
                       "  baton lock forget nightly-report --damaged\n\n"
                       "The holder of the lock is not told: first make sure that there is none.\n"
                       "The note is lost.");
  forget.add("NAME", all.forget.name, kName).type("").required();
  forget.add("--damaged", all.forget.damaged, "Required: nothing else can be forgotten");
  forget.add("--key", all.forget.key, "NAME is a key, as the doctor shows it");
  forget.add("--predicate", all.forget.predicate, "For subjects whose scope is the predicate")
      .type("P");
  add_common(forget, all);
  does(forget, all, lock_forget, all.forget);

  auto stats = lock.add_command("stats", "Count locks by subject and predicate",
                                "  baton lock stats --top 3");
  stats.add("--top", all.stats.top, "Show the N most contended names").type("N").shows_default();
  add_common(stats, all);
  does(stats, all, lock_stats, all.stats);
}

void add_database(Command app, Arguments& all) {
  app.add("--database", all.fence.database,
          "The database of the data: sqlite:PATH, postgres://… or redis://…")
      .type("URL")
      .required();
}

void add_fence(Command& root, Arguments& all) {
  auto fence = root.add_noun("fence", "Keep ex-holders from writing",
                             "  baton fence install --database sqlite:shop.db\n"
                             "  baton run report -- baton fence check --database sqlite:shop.db");
  auto check = fence.add_command(
      "check", "Would a write with this token be accepted?",
      "  baton fence check --database sqlite:shop.db    # under baton run: $BATON_FENCE\n"
      "  baton fence check --key \"$BATON_NAME\" \"$BATON_TOKEN\" --database sqlite:shop.db\n\n"
      "Records nothing. Without NAME it checks all names and ancestors of the lease\n"
      "in BATON_FENCE.\n"
      "Exit code: 0 if it would, 77 if a newer holder has been there.");
  check.add("NAME", all.fence.name, kName).type("");
  check.add("TOKEN", all.fence.token, "As in BATON_TOKEN").type("");
  check.add("--key", all.fence.key, "NAME is a key, as in BATON_NAME");
  check.add("--mode", all.fence.mode, "The mode it was held in; default exclusive").type("M");
  check.add("--predicate", all.fence.predicate, "For subjects whose scope is the predicate")
      .type("P");
  add_database(check, all);
  add_common(check, all);
  does(check, all, fence_check, all.fence);

  auto rebase = fence.add_command("rebase", "After a restore: raise tokens above the fence's",
                                  "  baton fence rebase --database postgres://app@db/shop");
  add_database(rebase, all);
  add_common(rebase, all);
  does(rebase, all, fence_rebase, all.fence);

  auto install = fence.add_command("install", "Make the fence in a database; harmless to repeat",
                                   "  baton fence install --database sqlite:shop.db");
  add_database(install, all);
  add_common(install, all, false);
  does(install, all, fence_install, all.fence);
}

void add_store(Command& root, Arguments& all) {
  auto store = root.add_noun("store", "Look after the store of the locks",
                             "  baton store doctor\n"
                             "  baton store migrate --store postgres://app@db/locks");
  auto migrate = store.add_command("migrate", "Make or upgrade its schema; harmless to repeat",
                                   "  baton store migrate --store postgres://app@db/locks\n"
                                   "  baton store migrate --sql > migrate.sql");
  migrate.add("--dry-run", all.migrate.dry_run, "Only say what would be done");
  migrate.add("--sql", all.migrate.sql, "Only print the SQL that does it, for PostgreSQL");
  add_common(migrate, all);
  does(migrate, all, store_migrate, all.migrate);
  auto status = store.add_command("status", "Show what and where it is, and its schema",
                                  "  baton store status --store redis://db");
  add_common(status, all);
  does(status, all, store_status);
  auto doctor =
      store.add_command("doctor", "Say what weakens the promise here, and the remedy",
                        "  baton store doctor --ttl 5s\n\n"
                        "Exits with 0 if all is well or there is only advice, else with 1.");
  doctor.add_time("--ttl", all.doctor.ttl, "The shortest TTL in use");
  add_common(doctor, all);
  does(doctor, all, store_doctor, all.doctor);
}

void add_policy(Command& root, Arguments& all) {
  auto policy = root.add_noun(
      "policy", "Say what may be locked, and how",
      "  baton policy check locks.yaml\n  baton policy apply locks.yaml\n  baton policy show");
  auto check = policy.add_command("check", "Read a policy file and say what is wrong with it",
                                  "  baton policy check locks.yaml");
  check.add("FILE", all.policy.file, "YAML; - is standard input").type("").required();
  add_common(check, all, false);
  does(check, all, policy_check, all.policy);

  auto apply =
      policy.add_command("apply", "Put a policy in force",
                         "  baton policy apply locks.yaml --timeout 5m\n\n"
                         "If it changes who conflicts, nobody can acquire until the holders of "
                         "the\nchanged subjects have gone.");
  apply.add("FILE", all.policy.file, "YAML; - is standard input").type("").required();
  apply.add_time("--timeout", all.policy.timeout, "How long holders may take to go");
  apply.add("--replace", all.policy.replace,
            "Even if the policy in force cannot be read; waits for all locks to go");
  add_common(apply, all);
  does(apply, all, policy_apply, all.policy);

  auto show = policy.add_command("show", "Show the policy in force, as YAML",
                                 "  baton policy show > locks.yaml");
  add_common(show, all);
  does(show, all, policy_show);
}

void add_rest(Command& root, Arguments& all) {
  auto help = root.add_command("help", "Show the help of a command",
                               "  baton help\n  baton help lock find");
  help.add("COMMAND", all.help_of, "As 'lock find'; none: of baton itself").type("");
  help.when_given([&all] { all.wants_help = true; });
  auto version_app = root.add_command("version", "Show the version", "  baton version --json");
  add_common(version_app, all, false);
  does(version_app, all, version);
  auto completion_app = root.add_command("completion", "Print a completion script",
                                         "  source <(baton completion bash)");
  completion_app.add("SHELL", all.shell, "bash, zsh or fish").type("").required();
  add_common(completion_app, all, false);
  does(completion_app, all, completion, all.shell);
}

void describe(Command& root, Arguments& all) {
  root.footer(
      "Examples:\n"
      "  baton run nightly-report --at-least-for 1m -- ./report.sh\n"
      "                                  on every machine; one runs it\n"
      "  baton elect outbox -- ./publisher\n"
      "                                  on every machine; the leader runs it\n"
      "  baton lock list                 who holds what\n\n"
      "The store is --store, $BATON_STORE, 'store:' in baton.yaml (here or in\n"
      "$XDG_CONFIG_HOME/baton), or else a file of your own in $XDG_STATE_HOME/baton.");
  root.group_help(kCommonOptions);
  root.add_version_flag(kCommonOptions);
  add_common(root, all);  // before the command or behind it, as one is used to
  add_run(root, all);
  add_hold(root, all);
  add_elect(root, all);
  add_leader(root, all);
#ifdef BATON_HAS_CRON
  add_cron(root, all);
#endif
  add_lock(root, all);
  add_fence(root, all);
  add_store(root, all);
  add_policy(root, all);
  add_job(root, all);
  add_node(root, all);
  add_partition(root, all);
#ifdef BATON_HAS_OUTBOX
  add_outbox(root, all);
  add_inbox(root, all);
  add_dlq(root, all);
#endif
#ifdef BATON_HAS_EVENT_LOG
  add_processor(root, all);
#endif
  add_broker(root, all);
#ifdef BATON_HAS_RELAY
  add_relay(root, all);
#endif
  add_rest(root, all);
}

// Somebody forgot the dashes. The lock may be called as the command is.
std::string without_dashes(const std::vector<std::string>& words, const std::string& command,
                           const std::string& name) {
  auto end = std::find(words.begin(), words.end(), command);
  if (command == name) end = std::find(end + 1, words.end(), command);
  std::string line = "baton";
  for (auto word = words.begin(); word != end; ++word) line += " " + redact_url(*word);
  return "put -- before the command: " + line + " -- " + redact_url(command);
}

}  // namespace

Understood parse(std::vector<std::string> words, Arguments& all) {
  // The words behind -- are the user's command: they are not parsed.
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const bool has_command = dashes != words.end();
  if (has_command) {
    all.run.command.assign(dashes + 1, words.end());
    all.elect.command = all.run.command;
    words.erase(dashes, words.end());
  }
  Program program("baton",
                  "Of all the replicas of a service, exactly one does each piece of work.");
  describe(program, all);
  add_manual(program);
  for (const auto* word : {"ls", "ps", "locks"}) program.suggest(word, "lock list");
  for (const auto* word : {"acquire", "exec", "with"}) program.suggest(word, "run");
  for (const auto* word : {"release", "unlock"}) program.suggest(word, "lock break");
  for (const auto* word : {"coproc", "keep"}) program.suggest(word, "hold");
  auto understood = program.understand(words);
  if (has_command && understood.wrong.empty() && understood.help.empty() &&
      !program.is_followed()) {
    understood.wrong = "only run and elect take a command behind '--'; see 'baton --help'";
  }
  if (!has_command && !understood.too_many.empty()) {
    understood.wrong = without_dashes(words, understood.too_many,
                                      all.run.name.empty() ? all.elect.name : all.run.name);
  }
  if (understood.version) all.command = version;
  if (all.wants_help && understood.wrong.empty() && understood.help.empty()) {
    all.wants_help = false;
    std::vector<std::string> instead = all.help_of;
    instead.emplace_back("--help");
    return parse(std::move(instead), all);
  }
  // Words that are not understood may have ended before --json was.
  if (!understood.wrong.empty() || understood.version) {
    all.json = std::find(words.begin(), words.end(), "--json") != words.end();
  }
  return understood;
}

}  // namespace baton::cli
