// Options that several commands share.

#include "cli/options_build.h"

namespace baton::cli {

void add_common(Command app, Arguments& all, bool uses_store, bool owner) {
  app.add("--json", all.json, "One JSON document on stdout; errors as JSON on stderr")
      .group(kCommonOptions);
  if (!uses_store) return;
  app.add("--store", all.given.store,
          "Where the locks are: sqlite:PATH, or one of\n"
          "postgres:// postgres-advisory:// redis:// etcd:// k8s://")
      .type("URL")
      .not_empty("name a store, or leave the option out")
      .group(kCommonOptions);
  app.add("--region", all.given.region, "The region of names; DEFAULT if none is set")
      .type("R")
      .group(kCommonOptions);
  if (!owner) return;
  app.add("--owner", all.given.owner, "Who we are, for people; default HOST:PID")
      .type("WHO")
      .group(kCommonOptions);
}

void add_grace(Command app, std::string& grace) {
  app.add_time("--grace", grace,
               "After a loss, from SIGTERM to SIGKILL; never past the end of the lock");
}

void add_metrics(Command app, std::string& metrics) {
  app.add("--metrics", metrics, "Serve http://IP:PORT/metrics meanwhile, for Prometheus")
      .type("IP:PORT");
}

void does(Command app, Arguments& all, std::function<Result<int>(Context&)> command) {
  app.when_given([&all, command = std::move(command)] { all.command = command; });
}

}  // namespace baton::cli
