// The words of baton job and baton node.

#include "cli/options_build.h"

namespace baton::cli {
namespace {

using JobAction = Result<int> (*)(Context&, const JobArguments&);

Command add_job_action(Command job, Arguments& all, const std::string& name,
                       const std::string& what, const std::string& examples, JobAction action) {
  auto app = job.add_command(name, what, examples);
  app.add("NAME", all.job.name, "The job").type("").required();
  add_common(app, all);
  does(app, all, action, all.job);
  return app;
}

}  // namespace

void add_job(Command& root, Arguments& all) {
  auto job = root.add_noun("job", "Look at scheduled jobs, and tell them what to do",
                           "  baton job list\n"
                           "  baton job pause import-orders\n"
                           "  baton job run nightly-report --wait 5m");
  auto list = job.add_command("list", "List the jobs: last run, next run, node, result",
                              "  baton job list\n  baton job list --json");
  add_common(list, all);
  does(list, all, job_list);
  add_job_action(job, all, "show", "Show one job", "  baton job show import-orders", job_show);
  auto history = add_job_action(job, all, "history", "Show its last runs",
                                "  baton job history nightly-report --limit 3\n\n"
                                "Of the jobs of `baton cron`, and of others whose keep_runs says\n"
                                "so; else the last run alone.",
                                job_history);
  history.add("--limit", all.job.limit, "Show at most N runs")
      .type("N")
      .between(1, 20)
      .shows_default();
  add_job_action(job, all, "pause", "Start no fire of it until resume, on any node",
                 "  baton job pause import-orders", job_pause);
  add_job_action(job, all, "resume", "End a pause", "  baton job resume import-orders", job_resume);
  auto run_now = add_job_action(job, all, "run", "Run it once more, now, on one node",
                                "  baton job run nightly-report --wait 5m\n\n"
                                "With --wait, exits with 0 if it ended well, 1 if it failed, 75\n"
                                "if it took longer.",
                                job_run);
  run_now.add("--wait", all.job.wait, "Wait for its end, at most this long").type("TIME");
  add_job_action(job, all, "skip", "Leave out its next run", "  baton job skip nightly-report",
                 job_skip);
  add_job_action(job, all, "forget", "Clear what is left of a job that no live node has",
                 "  baton job forget old-report\n\n"
                 "Refused while a live node has it. One of that name begins with fire 1 again.",
                 job_forget);
}

void add_node(Command& root, Arguments& all) {
  auto node =
      root.add_noun("node", "Look at the processes of the fleet", "  baton node list --live");
  auto list = node.add_command("list", "List the live nodes, and those that vanished",
                               "  baton node list\n  baton node list --live --json");
  list.add("--live", all.node.live, "Only live nodes");
  add_common(list, all);
  does(list, all, node_list, all.node);
}

}  // namespace baton::cli
