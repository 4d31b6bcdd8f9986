#pragma once

// What the main() of every service does.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "baton/result.h"

namespace baton::apps {

inline constexpr int kOk = 0;
inline constexpr int kError = 1;
inline constexpr int kUsage = 2;

// `parse` makes of the words what is to be done, with `help` and `wrong`; `run` does it and returns
// the exit code, or why it cannot.
template <typename Parse, typename Run>
int start(const char* program, int argc, char** argv, Parse parse, Run run) {
  try {
    const auto parsed = parse(std::vector<std::string>(argv + 1, argv + argc));
    if (!parsed.help.empty()) {
      std::fputs(parsed.help.c_str(), stdout);
      return kOk;
    }
    if (!parsed.wrong.empty()) {
      std::fprintf(stderr, "%s: %s\n", program, parsed.wrong.c_str());
      return kUsage;
    }
    const Result<int> code = run(parsed.options);
    if (code) return *code;
    std::fprintf(stderr, "%s: %s\n", program, code.error().message.c_str());
    const Code why = code.error().code;
    return why == Code::bad_url || why == Code::bad_request ? kUsage : kError;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: internal error: %s\n", program, problem.what());
    return kError;
  }
}

}  // namespace baton::apps
