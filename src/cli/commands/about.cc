// baton version, baton completion.

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "baton/version.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/completions/baton.bash.h"
#include "cli/completions/baton.fish.h"
#include "cli/completions/baton.zsh.h"
#include "cli/json_writer.h"

namespace baton::cli {

Result<int> version(Context& context) {
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("version", baton::version).end_object();
    context.out.line(json.text());
  } else {
    context.out.line(fmt::format("baton {}", baton::version));
  }
  return exit_code::ok;
}

namespace {

// For the scripts: what could be typed at their place.
Result<int> print_names(Context& context, const std::string& kind) {
  const auto names = known_names(context, kind);
  if (!names) return names.error();
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().key("names").begin_array();
    for (const auto& name : *names) json.value(name);
    json.end_array().end_object();
    context.out.line(json.text());
  } else {
    for (const auto& name : *names) context.out.line(name);
  }
  return exit_code::ok;
}

}  // namespace

Result<int> completion(Context& context, const std::string& shell) {
  constexpr std::array<std::string_view, 3> kNames = {"locks", "jobs", "elections"};
  if (std::find(kNames.begin(), kNames.end(), shell) != kNames.end()) {
    return print_names(context, shell);
  }
  namespace files = embedded::cli_completions;
  std::string_view script;
  if (shell == "bash") {
    script = files::baton_bash;
  } else if (shell == "zsh") {
    script = files::baton_zsh;
  } else if (shell == "fish") {
    script = files::baton_fish;
  } else {
    return bad_request("there are completions for bash, zsh and fish, not for '" + shell + "'");
  }
  if (context.out.json()) {
    JsonWriter json;
    json.begin_object().field("shell", shell).field("script", script).end_object();
    context.out.line(json.text());
  } else {
    fmt::print("{}", script);
  }
  return exit_code::ok;
}

}  // namespace baton::cli
