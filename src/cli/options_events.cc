// The words of baton outbox, inbox and dlq.

#include "cli/options_build.h"

namespace baton::cli {
namespace {

using EventAction = Result<int> (*)(Context&, const EventArguments&);

Command add_event_command(Command noun, Arguments& all, const std::string& name,
                          const std::string& what, const std::string& examples,
                          EventAction action) {
  auto app = noun.add_command(name, what, examples);
  app.add("--database", all.events.database,
          "The service's own database: sqlite:PATH or postgres://…")
      .type("URL")
      .required();
  add_common(app, all, false);
  does(app, all, action, all.events);
  return app;
}

void add_filter(Command app, Arguments& all) {
  auto& events = all.events;
  app.add("ID", events.ids, "Only these events").type("");
  app.add("--type", events.type, "Only of this type, as DocumentUploaded").type("T");
  app.add("--aggregate", events.aggregate, "Only of this aggregate").type("A");
  app.add("--error", events.error, "Only with this in the last error, in any case").type("PART");
  app.add("--older-than", events.older_than, "Only those added longer ago than this, as 90s or 3d")
      .type("TIME");
}

void add_status(Command app, Arguments& all, const std::string& about) {
  app.add("--status", all.events.statuses, about).type("S").one_value_a_time();
}

void add_consumer(Command app, Arguments& all) {
  app.add("--consumer", all.events.consumer, "Only of this consumer").type("NAME");
}

void add_page(Command app, Arguments& all) {
  app.add("--limit", all.events.limit, "Show at most N").type("N").shows_default();
  app.add("--after", all.events.after, "Go on behind this position").type("POSITION");
}

void add_change(Command app, Arguments& all) {
  app.add("--all", all.events.all, "All that the command applies to, without a filter");
  app.add("--dry-run", all.events.dry_run, "Only show what would be done");
  app.add("--yes", all.events.yes, "Do not ask");
}

}  // namespace

void add_outbox(Command& root, Arguments& all) {
  auto noun = root.add_noun("outbox", "See what waits to be published, mend what is stuck",
                            "  baton outbox status --database postgres://app@db/shop\n"
                            "  baton outbox retry --error unroutable --database sqlite:shop.db");
  add_event_command(noun, all, "install", "Make its tables in a database; harmless to repeat",
                    "  baton outbox install --database sqlite:shop.db", outbox_install);
  auto status = add_event_command(noun, all, "status", "Say whether anything is stuck, and why",
                                  "  baton outbox status --database postgres://app@db/shop\n\n"
                                  "Exit code: 0 if nothing is stuck, 1 if something is.",
                                  outbox_status);
  status.add("--watch", all.events.watch, "Go on and show what changes, until Ctrl-C");
  auto list = add_event_command(
      noun, all, "list", "List events, by default those that are not published",
      "  baton outbox list --database sqlite:shop.db\n"
      "  baton outbox list --status FAILED --error unroutable --database sqlite:shop.db",
      outbox_list);
  add_filter(list, all);
  add_status(list, all, "Only PENDING, SENT, FAILED or DISCARDED; may be repeated");
  list.add("--all", all.events.all, "Of every status");
  add_page(list, all);
  auto show =
      add_event_command(noun, all, "show", "Show one event, with its payload",
                        "  baton outbox show 01990a3e-… --database sqlite:shop.db", outbox_show);
  show.add("ID", all.events.id, "The event").type("").required();
  auto retry = add_event_command(
      noun, all, "retry", "Try failed events again, at once",
      "  baton outbox retry --error unroutable --dry-run --database sqlite:shop.db\n\n"
      "Those that are FAILED, and those that wait for another attempt: with no\n"
      "attempt used. Counts first, and asks unless --yes is given.",
      outbox_retry);
  add_filter(retry, all);
  add_status(retry, all, "Only PENDING or FAILED");
  add_change(retry, all);
  auto discard = add_event_command(
      noun, all, "discard", "Never publish events that are in trouble",
      "  baton outbox discard 01990a3e-… --yes --database sqlite:shop.db\n\n"
      "Those that are FAILED, wait for another attempt or are held behind such.\n"
      "The next event of the aggregate goes on. Counts first, and asks unless --yes\n"
      "is given.",
      outbox_discard);
  add_filter(discard, all);
  add_status(discard, all, "Only PENDING or FAILED");
  add_change(discard, all);
  auto clean =
      add_event_command(noun, all, "clean", "Remove events that were published long enough ago",
                        "  baton outbox clean --keep 2d --database sqlite:shop.db\n\n"
                        "Run it from cron, once an hour.",
                        outbox_clean);
  clean.add_time("--keep", all.events.keep, "How long, since they were added; 1h to 6d");
}

void add_inbox(Command& root, Arguments& all) {
  auto noun = root.add_noun("inbox", "See the messages that are in trouble at consumers",
                            "  baton inbox status --database postgres://app@db/shop");
  add_event_command(noun, all, "install", "Make its tables in a database; harmless to repeat",
                    "  baton inbox install --database sqlite:shop.db", inbox_install);
  auto status = add_event_command(noun, all, "status", "Say whether anything is stuck, and why",
                                  "  baton inbox status --database sqlite:shop.db\n\n"
                                  "Exit code: 0 if nothing is stuck, 1 if something is.",
                                  inbox_status);
  add_consumer(status, all);
  auto list = add_event_command(
      noun, all, "list", "List messages: retried, held back and dead ones",
      "  baton inbox list --consumer billing --database sqlite:shop.db", inbox_list);
  add_filter(list, all);
  add_consumer(list, all);
  add_status(list, all, "Only RETRY, HELD, DEAD or DISCARDED; may be repeated");
  list.add("--all", all.events.all, "Of every status");
  add_page(list, all);
  auto show =
      add_event_command(noun, all, "show", "Show one message, with its payload",
                        "  baton inbox show 01990a3e-… --database sqlite:shop.db", inbox_show);
  show.add("ID", all.events.id, "The event").type("").required();
  add_consumer(show, all);
}

void add_dlq(Command& root, Arguments& all) {
  auto noun = root.add_noun("dlq", "See dead letters, and redrive or discard them",
                            "  baton dlq list --database postgres://app@db/shop\n"
                            "  baton dlq redrive --error timeout --database sqlite:shop.db");
  auto list =
      add_event_command(noun, all, "list", "Count dead letters by their error",
                        "  baton dlq list --database sqlite:shop.db\n"
                        "  baton dlq list --each --consumer billing --database sqlite:shop.db",
                        dlq_list);
  add_filter(list, all);
  add_consumer(list, all);
  list.add("--each", all.events.each, "One a line");
  add_page(list, all);
  auto show = add_event_command(noun, all, "show", "Show one dead letter, with its payload",
                                "  baton dlq show 01990a3e-… --database sqlite:shop.db", dlq_show);
  show.add("ID", all.events.id, "The event").type("").required();
  add_consumer(show, all);
  auto redrive = add_event_command(
      noun, all, "redrive", "Let consumers handle dead letters again",
      "  baton dlq redrive --error timeout --rate 20/s --database sqlite:shop.db\n\n"
      "With no attempt used. Counts first, and asks unless --yes is given.",
      dlq_redrive);
  add_filter(redrive, all);
  add_consumer(redrive, all);
  add_change(redrive, all);
  redrive.add("--rate", all.events.rate, "At most N a second").type("N/s");
  redrive.add("--force", all.events.force, "Also messages older than the deduplication window");
  auto discard =
      add_event_command(noun, all, "discard", "Never handle dead letters",
                        "  baton dlq discard 01990a3e-… --yes --database sqlite:shop.db\n\n"
                        "Counts first, and asks unless --yes is given.",
                        dlq_discard);
  add_filter(discard, all);
  add_consumer(discard, all);
  add_change(discard, all);
  auto exported = add_event_command(
      noun, all, "export", "Print dead letters whole, one JSON document a line",
      "  baton dlq export --consumer billing --database sqlite:shop.db > dead.jsonl", dlq_export);
  add_filter(exported, all);
  add_consumer(exported, all);
}

}  // namespace baton::cli
