#pragma once

// How the words of the commands are described: options.cc and the other files options_*.cc.

#include <functional>
#include <string>
#include <utility>

#include "cli/options.h"
#include "command_line/command.h"

namespace baton::cli {

using command_line::Command;
using command_line::Program;
using command_line::Understood;

inline constexpr const char* kCommonOptions = "Common options";
inline constexpr const char* kName =
    "SUBJECT[/RESOURCE…], or the text form lock:MODE:SUBJECT:PREDICATE[:…]";

// For commands that run for long.
void add_grace(Command app, std::string& grace);
void add_metrics(Command app, std::string& metrics);

void add_common(Command app, Arguments& all, bool uses_store = true, bool owner = true);

// Which command a command line means that names `app`.
void does(Command app, Arguments& all, std::function<Result<int>(Context&)> command);

// With those of `all` that are its own.
template <typename Own>
void does(Command app, Arguments& all, Result<int> (*command)(Context&, const Own&),
          const Own& own) {
  does(app, all, [command, &own](Context& context) { return command(context, own); });
}

void add_run(Command& root, Arguments& all);
void add_hold(Command& root, Arguments& all);

// Adds the text of the manual pages that is not in the help.
void add_manual(Program& program);

void add_elect(Command& root, Arguments& all);
void add_leader(Command& root, Arguments& all);

void add_job(Command& root, Arguments& all);
void add_node(Command& root, Arguments& all);

void add_cron(Command& root, Arguments& all);

void add_partition(Command& root, Arguments& all);

void add_outbox(Command& root, Arguments& all);
void add_inbox(Command& root, Arguments& all);
void add_dlq(Command& root, Arguments& all);
void add_processor(Command& root, Arguments& all);
// topology, queue and broker
void add_broker(Command& root, Arguments& all);
void add_relay(Command& root, Arguments& all);

}  // namespace baton::cli
