// The words of baton elect and baton leader.

#include "cli/options_build.h"

namespace baton::cli {
namespace {

constexpr int kMostPriority = 1'000'000;
constexpr const char* kElection = "Of the election, as outbox or views/orders";

Command add_leader_command(Command noun, Arguments& all, const std::string& name,
                           const std::string& what, const std::string& examples) {
  auto app = noun.add_command(name, what, examples);
  app.add("NAME", all.leader.name, kElection).type("").required();
  add_common(app, all);
  return app;
}

void add_timeout(Command app, Arguments& all) {
  app.add_time("--timeout", all.leader.timeout, "How long to wait until it has gone");
}

}  // namespace

void add_elect(Command& root, Arguments& all) {
  auto app = root.add_command(
      "elect", "Run a command while we lead",
      "  baton elect outbox -- ./publisher\n"
      "  baton elect views/orders --node pod-2 --ttl 5s --restart -- ./project orders\n"
      "  baton elect outbox --priority 10 --healthy-if 'df / | ./enough' -- ./publisher\n\n"
      "CMD finds BATON_TERM (the same as BATON_TOKEN), BATON_NAME, BATON_GRANT,\n"
      "BATON_MODE and BATON_FENCE in its environment. If leadership is lost CMD is\n"
      "ended, and started again when it returns. If CMD ends by itself, so does baton,\n"
      "with its exit code.\n"
      "With --metrics, GET /leader answers 200 while this replica leads, else 503.\n"
      "Exit code: that of CMD, 128 + N if signal N ended it or the wait; 127 or 126 if\n"
      "CMD cannot be found or executed; 76 if leadership was lost and CMD, or what it\n"
      "has started, could not be ended.");
  app.followed_by("-- CMD [ARG...]");
  auto& with = all.elect;
  app.add("NAME", with.name, kElection).type("").required();
  app.add("--node", with.node, "Who we are, for people and for transfer; as --owner").type("ID");
  app.add_time("--ttl", with.ttl, "How long a leader that dies keeps the others waiting");
  add_grace(app, with.grace);
  app.add("--restart", with.restart, "Start CMD again if it ends by itself while we lead");
  app.add("--priority", with.priority,
          "Of the candidates that wait, the one with the highest is next; give all one, or none")
      .type("N")
      .between(-kMostPriority, kMostPriority);
  app.add("--preempt", with.preempt, "With --priority: take over from a leader of a lower one");
  app.add("--healthy-if", with.healthy_if,
          "Stand and lead only while this shell command ends with 0; asked every third of the TTL")
      .type("CMD");
  app.add("--never-lead", with.never_lead, "Only tell who leads; do not stand");
  add_metrics(app, with.metrics);
  add_common(app, all);
  does(app, all, elect, all.elect);
}

void add_leader(Command& root, Arguments& all) {
  auto noun = root.add_noun("leader", "See who leads, and ask it to go",
                            "  baton leader show outbox\n"
                            "  baton leader is-me outbox --node pod-2\n"
                            "  baton leader resign outbox --reason 'kernel update'\n"
                            "  baton leader transfer outbox pod-2");
  auto show = add_leader_command(noun, all, "show", "Show who leads, in which term, since when",
                                 "  baton leader show outbox\n\n"
                                 "Exit code: 75 if nobody leads.");
  does(show, all, leader_show, all.leader);

  auto is_me = add_leader_command(
      noun, all, "is-me", "Ask whether this node leads, for probes and scripts",
      "  baton leader is-me outbox --node pod-2 && ./only-on-the-leader\n\n"
      "Says who leads. Exit code: 0 if the node leads and has not been asked to go,\nelse 75.\n"
      "The answer is of the past when you read it: what must not happen twice belongs\n"
      "behind the fence.");
  is_me.add("--node", all.leader.node, "The --node of `baton elect` here; default: --owner")
      .type("ID");
  does(is_me, all, leader_is_me, all.leader);

  auto resign =
      add_leader_command(noun, all, "resign", "Make the leader hand over to the first in line",
                         "  baton leader resign outbox --reason 'kernel update'\n\n"
                         "The leader ends its work first. Exit code: 75 if nobody leads.");
  resign.add("--reason", all.leader.reason, "Why; the leader is told").type("TEXT");
  add_timeout(resign, all);
  does(resign, all, leader_resign, all.leader);

  auto transfer =
      add_leader_command(noun, all, "transfer", "Make the leader hand over to a node that waits",
                         "  baton leader transfer outbox pod-2\n\n"
                         "The leader ends its work first. Exit code: 75 if nobody leads.");
  transfer.add("NODE", all.leader.node, "As `baton lock show leader/NAME` lists it")
      .type("")
      .required();
  add_timeout(transfer, all);
  does(transfer, all, leader_transfer, all.leader);
}

}  // namespace baton::cli
