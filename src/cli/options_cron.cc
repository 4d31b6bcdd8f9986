// The words of baton cron.

#include "cli/options_build.h"

namespace baton::cli {

void add_cron(Command& root, Arguments& all) {
  auto app = root.add_command(
      "cron", "Run commands on a schedule, each time on one machine",
      "  baton cron /etc/baton/cron.yaml\n"
      "  baton cron jobs.yaml --check\n"
      "  baton cron --import /etc/crontab --user root --output jobs.yaml\n\n"
      "  jobs:\n"
      "    import-orders:\n"
      "      every: 30s                  # or after-end: 30s, or cron: 30 2 * * MON-FRI\n"
      "      command: [./import, --all]  # or text, for /bin/sh\n\n"
      "Start it on every machine with the same file and BATON_STORE. A command finds\n"
      "BATON_JOB, BATON_FIRE, BATON_DUE, BATON_ATTEMPT, BATON_TOKEN and BATON_FENCE\n"
      "in its environment. If the lock is lost, it and all that it started are ended.\n"
      "A file that changes is read again, at once and with SIGHUP. SIGTERM asks the\n"
      "commands to end, and waits. Logs to stdout, as JSON, with what commands write.\n"
      "`baton job list` shows the jobs. Exit code: 128 + N if signal N ended it.");
  auto& with = all.cron;
  app.add("FILE", with.file, "The jobs, in YAML").type("");
  app.add("--check", with.check, "Only say what is wrong, or when jobs are due next");
  app.add("--import", with.import, "Only print this crontab as a FILE of baton cron")
      .type("CRONTAB");
  app.add("--output", with.output, "With --import: write to this new file").type("FILE");
  app.add("--user", with.user,
          "CRONTAB has users, as /etc/crontab, which\nneeds this: take the entries of this one")
      .type("NAME");
  app.add("--node", with.node,
          "Name of this machine, also for nodes: of a\njob (default HOST:PID); as --owner")
      .type("ID");
  app.add("--role", with.role, "Processes of one role share the jobs").type("ROLE").shows_default();
  app.add("--workers", with.workers, "Commands at a time")
      .type("N")
      .between(1, 1'000)
      .shows_default();
  app.add("--log-format", with.log_format, "json (default) or text").type("F");
  app.add("--log-level", with.log_level, "info (default); debug: also what others run").type("L");
  add_metrics(app, with.metrics);
  add_common(app, all);
  does(app, all, cron, all.cron);
}

}  // namespace baton::cli
