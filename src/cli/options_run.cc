// The options of run and hold.

#include "cli/options_build.h"

namespace baton::cli {
namespace {

void add_lock_options(Command app, LockArguments& lock, const char* at_least_for) {
  app.add("--mode", lock.mode, "exclusive (default), shared, update, intent, IS or SIX").type("M");
  app.add("--predicate", lock.predicate, "What the holder does; default holding").type("P");
  app.add_time("--ttl", lock.ttl,
               "Lease time: if the holder dies, the lock is freed after this long");
  app.add_time("--wait", lock.wait, "How long to wait for it, at most 24h");
  app.add_time("--at-least-for", lock.at_least_for, at_least_for);
  app.add("--metadata", lock.metadata, "Shown with the holder; may be repeated")
      .type("KEY=VALUE")
      .one_value_a_time();
}

}  // namespace

void add_run(Command& root, Arguments& all) {
  auto app = root.add_command(
      "run", "Run a command under a lock",
      "  baton run nightly-report --at-least-for 1m -- ./report.sh\n"
      "  baton run page/fs-1/doc-7/3 --predicate extracting --wait 30s -- extract 3\n\n"
      "CMD finds BATON_NAME, BATON_TOKEN, BATON_GRANT, BATON_MODE and BATON_FENCE in\n"
      "its environment.\n"
      "Exit code: that of CMD, 128 + N if signal N ended it; 75 (--busy-exit-code) if\n"
      "the lock is busy, 76 if it was lost, 127 or 126 if CMD cannot be found or\n"
      "executed.");
  app.followed_by("-- CMD [ARG...]");
  auto& with = all.run;
  app.add("NAME", with.name, kName).type("").required();
  add_lock_options(app, with, "Stays taken so long even if CMD ends before");
  add_grace(app, with.grace);
  app.add("--quiet", with.quiet, "Print nothing if the lock is busy, nor while waiting for it");
  app.add("--busy-exit-code", with.busy_exit_code,
          "Exit code if the lock is busy or not free in time")
      .type("N")
      .between(0, 255)
      .shows_default();
  add_metrics(app, with.metrics);
  add_common(app, all);
  does(app, all, run, all.run);
}

void add_hold(Command& root, Arguments& all) {
  auto app = root.add_command(
      "hold", "Hold a lock for a program that talks to it by pipes",
      "  coproc HOLD { exec baton hold nightly-report --wait 10s; }\n"
      "  baton hold page/fs-1/doc-7/3 page/fs-1/doc-7/4 --progress\n\n"
      "Several names are taken together or not at all. stdout has a JSON object a\n"
      "line: granted, lost, released, error, …; stdin takes release, note and status.\n"
      "The lock is kept until stdin is closed; docs/hold.md has the protocol.\n"
      "Exit code: 0 if it was released, 128 + N if signal N asked for that, 75 if it\n"
      "was busy, 76 if it was lost.");
  auto& with = all.hold;
  app.add("NAME", with.names, kName).type("").required();
  add_lock_options(app, with, "Stays taken so long even if it is released before");
  app.add("--note", with.note, "Written with the grant, for the next holder").type("NOTE");
  app.add("--ordinal", with.ordinal, "The number of that note").type("N");
  app.add("--if-ordinal-below", with.if_ordinal_below,
          "Only if the number of the note is below N; else superseded")
      .type("N");
  app.add("--progress", with.progress, "Also print the lines waiting and renewed");
  add_metrics(app, with.metrics);
  add_common(app, all);
  does(app, all, hold, all.hold);
}

}  // namespace baton::cli
