// baton version, baton completion.

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

Result<int> completion(Context& /*context*/, const std::string& shell) {
  namespace files = embedded::cli_completions;
  if (shell == "bash") {
    fmt::print("{}", files::baton_bash);
  } else if (shell == "zsh") {
    fmt::print("{}", files::baton_zsh);
  } else if (shell == "fish") {
    fmt::print("{}", files::baton_fish);
  } else {
    return bad_request("there are completions for bash, zsh and fish, not for '" + shell + "'");
  }
  return exit_code::ok;
}

}  // namespace baton::cli
