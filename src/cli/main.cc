#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "baton/locks.h"
#include "cli/cron/spawner.h"
#include "cli/options.h"
#include "cli/remedy.h"

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
    out.error(with_remedy(code.error()));
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

// Every user of the machine can read the command line of a process: once it is copied, the
// passwords in its URLs are overwritten. Behind -- stands the command's own.
void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word(argv[i]);
    std::string shown = redact_url(word);
    if (shown == word) continue;
    shown.resize(word.size());
    std::copy(shown.begin(), shown.end(), argv[i]);
  }
}

// A file that is opened later must not become our stdout or stderr because that was closed. These
// are opened the wrong way round, so that their use fails as that of a closed one does.
void keep_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free, and those below it are taken.
    if (fcntl(file, F_GETFD) < 0) ::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
  baton::cli::keep_standard_files();
  if (argc == 2 && std::string_view(argv[0]) == baton::cli::kSpawnerProgram) {
    baton::cli::run_spawner(argv[1]);
  }
  baton::cli::Arguments all;
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    baton::cli::hide_passwords(argc, argv);
    return baton::cli::start(std::move(words), all);
  } catch (const std::exception& problem) {
    baton::cli::Output(all.json).error("error", std::string("internal error: ") + problem.what());
    return baton::cli::exit_code::error;
  }
}
