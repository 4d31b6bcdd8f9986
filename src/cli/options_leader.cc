// The words of baton elect and baton leader, and what all commands have in common.

#include <CLI/CLI.hpp>

#include "cli/options_build.h"

namespace baton::cli {
namespace {

constexpr const char* kElection = "Of the election, as outbox or views/orders";

CLI::App* add_leader_command(CLI::App* noun, Arguments& all, const std::string& name,
                             const std::string& what, const std::string& examples) {
  auto* app = add_command(noun, name, what, examples);
  app->add_option("NAME", all.leader.name, kElection)->type_name("")->required();
  add_common(app, all);
  return app;
}

void add_timeout(CLI::App* app, Arguments& all) {
  app->add_option("--timeout", all.leader.timeout, "How long to wait until it has gone")
      ->type_name("TIME")
      ->capture_default_str();
}

}  // namespace

void add_common(CLI::App* app, Arguments& all, bool uses_store, bool owner) {
  app->add_flag("--json", all.json, "One JSON document on stdout; errors as JSON on stderr")
      ->group(kCommonOptions);
  if (!uses_store) return;
  app->add_option("--store", all.given.store, "Where the locks are: sqlite:PATH, postgres://…")
      ->type_name("URL")
      ->group(kCommonOptions);
  app->add_option("--region", all.given.region, "The region of names; DEFAULT if none is set")
      ->type_name("R")
      ->group(kCommonOptions);
  if (!owner) return;
  app->add_option("--owner", all.given.owner, "Who we are, for people; default HOST:PID")
      ->type_name("WHO")
      ->group(kCommonOptions);
}

void add_metrics(CLI::App* app, std::string& metrics) {
  app->add_option("--metrics", metrics, "Serve http://IP:PORT/metrics meanwhile, for Prometheus")
      ->type_name("IP:PORT");
}

CLI::App* add_command(CLI::App* parent, const std::string& name, const std::string& what,
                      const std::string& examples) {
  CLI::App* app = parent->add_subcommand(name, what);
  app->footer("Examples:\n" + examples);  // else it has that of its parent
  return app;
}

CLI::App* add_noun(CLI::App& parent, const std::string& name, const std::string& what,
                   const std::string& examples) {
  CLI::App* app = add_command(&parent, name, what, examples);
  app->require_subcommand(1);
  return app;
}

void add_elect(CLI::App& root, Arguments& all) {
  auto* app = add_command(
      &root, "elect", "Run a command while we lead",
      "  baton elect outbox -- ./publisher\n"
      "  baton elect views/orders --node pod-2 --ttl 5s --restart -- ./project orders\n\n"
      "CMD finds BATON_TERM (the same as BATON_TOKEN), BATON_NAME, BATON_GRANT and BATON_MODE\n"
      "in its environment. If leadership is lost CMD is ended, and started again when it\n"
      "returns. If CMD ends by itself, so does baton, with its exit code.\n"
      "Exit code: that of CMD, 128 + N if signal N ended it or the wait; 127 or 126 if CMD\n"
      "cannot be found or executed.");
  auto& with = all.elect;
  app->add_option("NAME", with.name, kElection)->type_name("")->required();
  app->add_option("--node", with.node, "Who we are, for people and for transfer; as --owner")
      ->type_name("ID");
  app->add_option("--ttl", with.ttl, "How long a leader that dies keeps the others waiting")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--grace", with.grace,
                  "After a loss, from SIGTERM to SIGKILL; never past the end of the lock")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_flag("--restart", with.restart, "Start CMD again if it ends by itself while we lead");
  add_metrics(app, with.metrics);
  add_common(app, all);
  app->callback([&all] { all.command = [&all](Context& c) { return elect(c, all.elect); }; });
}

void add_leader(CLI::App& root, Arguments& all) {
  auto* noun = add_noun(root, "leader", "See who leads, and ask it to go",
                        "  baton leader show outbox\n"
                        "  baton leader resign outbox --reason 'kernel update'\n"
                        "  baton leader transfer outbox pod-2");
  auto* show = add_leader_command(noun, all, "show", "Show who leads, in which term, since when",
                                  "  baton leader show outbox\n\n"
                                  "Exit code: 75 if nobody leads.");
  show->callback(
      [&all] { all.command = [&all](Context& c) { return leader_show(c, all.leader); }; });

  auto* resign = add_leader_command(
      noun, all, "resign", "Make the leader hand over to the longest waiting candidate",
      "  baton leader resign outbox --reason 'kernel update'\n\n"
      "The leader ends its work first. Exit code: 75 if nobody leads.");
  resign->add_option("--reason", all.leader.reason, "Why; the leader is told")->type_name("TEXT");
  add_timeout(resign, all);
  resign->callback(
      [&all] { all.command = [&all](Context& c) { return leader_resign(c, all.leader); }; });

  auto* transfer =
      add_leader_command(noun, all, "transfer", "Make the leader hand over to a node that waits",
                         "  baton leader transfer outbox pod-2\n\n"
                         "The leader ends its work first. Exit code: 75 if nobody leads.");
  transfer->add_option("NODE", all.leader.node, "As `baton lock show leader/NAME` lists it")
      ->type_name("")
      ->required();
  add_timeout(transfer, all);
  transfer->callback(
      [&all] { all.command = [&all](Context& c) { return leader_transfer(c, all.leader); }; });
}

}  // namespace baton::cli
