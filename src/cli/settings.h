#pragma once

// Where the locks are and who we are. Each setting is taken from the first of: the command line,
// the environment (BATON_STORE), the first baton.yaml found (here, then in $XDG_CONFIG_HOME/baton),
// the default.

#include <string>

#include "baton/result.h"

namespace baton::cli {

struct Settings {
  std::string store;
  std::string region;  // empty: not set
  std::string owner;   // empty: the client's default, host:pid
};

// `given` is the command line: what is empty there was not given. Makes the directory of the
// default store if that is what it comes to.
[[nodiscard]] Result<Settings> resolve_settings(const Settings& given);

}  // namespace baton::cli
