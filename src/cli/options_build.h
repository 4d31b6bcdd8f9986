#pragma once

// How the words of a command are described to CLI11, which only the files options*.cc know.

#include <string>

#include "cli/options.h"

namespace CLI {
class App;
}

namespace baton::cli {

inline constexpr const char* kCommonOptions = "Common options";

// For commands that run for long.
void add_metrics(CLI::App* app, std::string& metrics);

void add_common(CLI::App* app, Arguments& all, bool uses_store = true, bool owner = true);
CLI::App* add_command(CLI::App* parent, const std::string& name, const std::string& what,
                      const std::string& examples);
CLI::App* add_noun(CLI::App& parent, const std::string& name, const std::string& what,
                   const std::string& examples);

void add_elect(CLI::App& root, Arguments& all);
void add_leader(CLI::App& root, Arguments& all);

void add_job(CLI::App& root, Arguments& all);
void add_node(CLI::App& root, Arguments& all);

}  // namespace baton::cli
