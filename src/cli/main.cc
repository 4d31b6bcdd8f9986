#include <cstdio>
#include <exception>

#include "cli/options.h"

namespace baton::cli {
namespace {

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Code::bad_name:
    case Code::bad_request:
    case Code::bad_url: return exit_code::usage;
    case Code::busy:
    case Code::timed_out: return exit_code::busy;
    case Code::lost: return exit_code::lost;
    case Code::fenced: return exit_code::fenced;
    default: return exit_code::error;
  }
}

int perform(Arguments& all, Output& out) {
  Context context{all.given, out};
  auto code = all.command(context);
  if (!code) {
    out.error(code.error());
    return exit_code_of(code.error());
  }
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0) {
    out.error("error", "cannot write the output");
    return exit_code::error;
  }
  return *code;
}

int start(std::vector<std::string> words, Arguments& all) {
  const auto parsed = parse(std::move(words), all);
  Output out(all.json);
  if (!parsed.wrong.empty()) {
    out.error("usage", parsed.wrong);
    return exit_code::usage;
  }
  if (!parsed.help.empty()) {
    std::fputs(parsed.help.c_str(), stdout);
    return exit_code::ok;
  }
  return perform(all, out);
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
  baton::cli::Arguments all;
  try {
    return baton::cli::start({argv + 1, argv + argc}, all);
  } catch (const std::exception& problem) {
    baton::cli::Output(all.json).error("error", std::string("internal error: ") + problem.what());
    return baton::cli::exit_code::error;
  }
}
