// The words of baton relay.

#include "cli/options_build.h"

namespace baton::cli {

void add_relay(Command& root, Arguments& all) {
  auto app = root.add_command(
      "relay", "Publish the events of an outbox to a broker",
      "  baton relay --outbox postgres://db/shop --broker rabbitmq://relay@mq/shop\n"
      "  baton relay --outbox sqlite:shop.db --broker embedded:broker.db --name shop\n\n"
      "Run one beside each replica of the service, or a few of their own: they divide\n"
      "the work. Goes on when database, broker or store are away, and waits for them\n"
      "when it starts. SIGTERM ends it: what is unconfirmed is waited for.\n"
      "Logs to stdout, as JSON. Exit code: 128 + N if signal N ended it.");
  auto& with = all.relay;
  app.add("--outbox", with.outbox, "The database of the outbox: postgres://… or sqlite:PATH")
      .type("URL")
      .required();
  app.add("--broker", with.broker,
          "The broker to publish to: rabbitmq://…, rabbitmqs://… or embedded:PATH; default "
          "$BATON_BROKER")
      .type("URL");
  app.add("--name", with.name, "Of the outbox; relays with one name share its lanes").type("NAME");
  app.add("--mode", with.mode, "partitioned (default): divided; leader: one has all").type("M");
  app.add("--topology", with.topology, "Exchanges, queues and bindings to declare first")
      .type("FILE");
  app.add_time("--ttl", with.ttl, "How long the lanes of a dead relay wait for another");
  app.add("--max-attempts", with.max_attempts, "Attempts for an event that the broker returns")
      .type("N")
      .between(1, 1'000)
      .shows_default();
  app.add_time("--first-delay", with.first_delay, "Before its second attempt; then doubled");
  app.add("--on-failed", with.on_failed,
          "hold (default): later events of its aggregate\nwait; skip: they do not")
      .type("WHAT");
  app.add_time("--keep", with.keep,
               "How long published events stay, since they were\nadded; 1h to 6d, 0 for ever");
  app.add("--log-format", with.log_format, "json (default) or text").type("F");
  app.add("--log-level", with.log_level, "info (default); debug: a line for each event").type("L");
  add_metrics(app, with.metrics);
  add_common(app, all);
  does(app, all, relay, all.relay);
}

}  // namespace baton::cli
