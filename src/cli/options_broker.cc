// The words of baton topology, baton queue and baton broker.

#include "cli/options_build.h"

namespace baton::cli {
namespace {

constexpr const char* kFile = "The topology, YAML or JSON; - is standard input";

void add_broker_options(Command app, Arguments& all) {
  app.add("--broker", all.broker.broker,
          "embedded:PATH, rabbitmq://… or rabbitmqs://…; default $BATON_BROKER")
      .type("URL")
      .not_empty("name a broker, or leave the option out")
      .group(kCommonOptions);
  add_common(app, all, false);
}

void add_topology(Command& root, Arguments& all) {
  auto noun = root.add_noun("topology", "Make exchanges and queues as a file says",
                            "  baton topology plan events.yaml\n"
                            "  baton topology apply events.yaml");
  auto plan = noun.add_command("plan", "Show what apply would make or refuse",
                               "  baton topology plan events.yaml --broker embedded:events.db\n\n"
                               "Exit code: 0 if apply would succeed, else 1.");
  plan.add("FILE", all.broker.file, kFile).type("").required();
  add_broker_options(plan, all);
  does(plan, all, topology_plan, all.broker);

  auto apply = noun.add_command("apply", "Make what is missing; harmless to repeat",
                                "  baton topology apply events.yaml --broker embedded:events.db\n\n"
                                "Nothing is changed or removed. What exists with other arguments "
                                "is an error.");
  apply.add("FILE", all.broker.file, kFile).type("").required();
  add_broker_options(apply, all);
  does(apply, all, topology_apply, all.broker);

  auto check = noun.add_command("check", "Say what differs from the file",
                                "  baton topology check events.yaml --json\n\n"
                                "Exit code: 0 if nothing does, else 1.");
  check.add("FILE", all.broker.file, kFile).type("").required();
  add_broker_options(check, all);
  does(check, all, topology_check, all.broker);
}

void add_queue(Command& root, Arguments& all) {
  auto noun =
      root.add_noun("queue", "Look at the queues of a broker", "  baton queue list events.yaml");
  auto list = noun.add_command("list", "List its queues with messages and consumers",
                               "  baton queue list events.yaml --json");
  list.add("FILE", all.broker.file, kFile).type("").required();
  add_broker_options(list, all);
  does(list, all, queue_list, all.broker);
}

}  // namespace

void add_broker(Command& root, Arguments& all) {
  add_topology(root, all);
  add_queue(root, all);
  auto noun = root.add_noun("broker", "Look after the broker", "  baton broker doctor events.yaml");
  auto doctor = noun.add_command("doctor", "Say what endangers messages here, and the remedy",
                                 "  baton broker doctor\n"
                                 "  baton broker doctor events.yaml    # and its queues\n\n"
                                 "Exits with 0 if all is well or there are only notes, else "
                                 "with 1.");
  doctor.add("FILE", all.broker.file, kFile).type("");
  add_broker_options(doctor, all);
  does(doctor, all, broker_doctor, all.broker);
}

}  // namespace baton::cli
