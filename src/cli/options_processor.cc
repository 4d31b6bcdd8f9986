// The words of baton processor.

#include "cli/options_build.h"

namespace baton::cli {
namespace {

using ProcessorAction = Result<int> (*)(Context&, const ProcessorArguments&);

Command add_processor_command(Command noun, Arguments& all, const std::string& name,
                              const std::string& what, const std::string& examples,
                              ProcessorAction action, bool named) {
  auto app = noun.add_command(name, what, examples);
  if (named) app.add("NAME", all.processor.name, "The processor").type("").required();
  app.add("--database", all.processor.database,
          "The database of the event log: sqlite:PATH or\npostgres://…")
      .type("URL")
      .required();
  add_common(app, all, false);
  does(app, all, action, all.processor);
  return app;
}

}  // namespace

void add_processor(Command& root, Arguments& all) {
  auto noun = root.add_noun("processor", "See and mend the processors of an event log",
                            "  baton processor list --database postgres://app@db/shop\n"
                            "  baton processor rebuild order_totals --database sqlite:shop.db");
  add_processor_command(noun, all, "install", "Make the tables of an event log; harmless to repeat",
                        "  baton processor install --database sqlite:shop.db", processor_install,
                        false);
  add_processor_command(noun, all, "list", "List processors: how far they are, who runs them",
                        "  baton processor list --database postgres://app@db/shop", processor_list,
                        false);
  add_processor_command(noun, all, "show", "Show one with its owner, error and what stalls it",
                        "  baton processor show order_totals --database sqlite:shop.db",
                        processor_show, true);
  add_processor_command(noun, all, "pause", "Stop one after the batch that is under way",
                        "  baton processor pause order_totals --database sqlite:shop.db",
                        processor_pause, true);
  add_processor_command(noun, all, "resume", "Let one go on, the event that failed first",
                        "  baton processor resume order_totals --database sqlite:shop.db",
                        processor_resume, true);
  auto reset = add_processor_command(
      noun, all, "reset", "Let one handle all events again",
      "  baton processor reset order_totals --yes --database sqlite:shop.db\n\n"
      "The tables of a view are emptied first; a publisher tells everything again.\n"
      "Says so, and asks unless --yes is given.",
      processor_reset, true);
  reset.add("--yes", all.processor.yes, "Do not ask");
  auto rebuild = add_processor_command(
      noun, all, "rebuild", "Build the tables of a view again beside the old ones",
      "  baton processor rebuild order_totals --database sqlite:shop.db\n\n"
      "The old tables stay up to date until the new rows take their place. Its owner\n"
      "does it; Ctrl-C ends only the waiting.",
      processor_rebuild, true);
  rebuild.add("--no-wait", all.processor.no_wait, "Do not wait for its end");
}

}  // namespace baton::cli
