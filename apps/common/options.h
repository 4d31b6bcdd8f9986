#pragma once

// What the command lines of the services have in common. Functions that return a text say with it
// what is wrong; it is empty if nothing is.

#include <initializer_list>
#include <string>

#include "baton/clock.h"
#include "command_line/command.h"
#include "observe/log.h"

namespace baton::apps {

// How a service logs, as it is typed.
struct LogWords {
  std::string format = "json";
  std::string level = "info";
};
void add_log(command_line::Command command, LogWords& words);
[[nodiscard]] std::string read_log(const LogWords& words, observe::LogFormat& format,
                                   observe::LogLevel& level);

struct Time {
  const char* option;
  const std::string& text;
  Millis least;
  Millis most;
  Millis& into;
};
[[nodiscard]] std::string read_times(std::initializer_list<Time> times);

// What was typed, else $BATON_STORE, else `fallback`. An empty variable counts, and no store opens
// with it: to go on would be to lock in another store than the rest does. That of the environment
// may have a password, so help must not show it as a default.
[[nodiscard]] std::string store_or(const std::string& typed, const char* fallback);

// The same with $BATON_BROKER.
[[nodiscard]] std::string broker_or(const std::string& typed, const char* fallback);

}  // namespace baton::apps
