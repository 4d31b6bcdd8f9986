#pragma once

// Where the locks are and who we are. Each setting is taken from the first of: the command line,
// the environment (BATON_STORE), the first baton.yaml found (here, then in $XDG_CONFIG_HOME/baton),
// the default. One that is given but empty is an error. A relative path in a baton.yaml is one from
// the directory of that file. The baton.yaml here counts only if the store was not given before it,
// and is refused unless it is a file of this user's or root's that nobody else may write: a
// directory such as /tmp could bring one of somebody else's.

#include <string>

#include "baton/result.h"

namespace baton::cli {

struct Settings {
  std::string store;
  std::string region;          // empty: not set
  std::string owner;           // empty: the client's default, host:pid
  bool default_store = false;  // nobody has named one: it is of this user on this machine
};

struct Context;

// An empty member of `context` was not given. If it comes to the default store, makes its
// directory, and says what it locks: on a terminal, and elsewhere if the store is new. Refuses
// memory:, whose locks would end with the command.
[[nodiscard]] Result<Settings> resolve_settings(const Context& context);

// The owner alone, for what needs no store; empty: not set.
[[nodiscard]] Result<std::string> resolve_owner(const Context& context);

}  // namespace baton::cli
