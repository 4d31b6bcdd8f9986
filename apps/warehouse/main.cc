#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>

#include "apps/common/ending_signals.h"
#include "apps/warehouse/options.h"
#include "apps/warehouse/verifier.h"

namespace baton::warehouse {
namespace {

using apps::EndingSignals;

constexpr int kOk = 0;
constexpr int kError = 1;
constexpr int kUsage = 2;

int fail(const Error& error) {
  std::fprintf(stderr, "warehouse: %s\n", error.message.c_str());
  const bool usage = error.code == Code::bad_url || error.code == Code::bad_request;
  return usage ? kUsage : kError;
}

int run_node(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to end
  EndingSignals signals;
  auto node = ObserverNode::start(options.config, options.node);
  if (!node) return fail(node.error());
  signals.wait();
  return kOk;
}

int run_generator(const Options& options) {
  auto made = generate(options.config, options.generator);
  if (!made) return fail(made.error());
  std::printf(
      "%lld rows written; %lld transactions came late, the latest %lld ms after the time of its "
      "rows; %lld were too late and were written again\n",
      static_cast<long long>(made->rows), static_cast<long long>(made->late_commits),
      static_cast<long long>(made->latest.count()), static_cast<long long>(made->too_late));
  return kOk;
}

int run_verify(const Options& options) {
  const auto until = std::chrono::steady_clock::now() + options.verify_wait;
  while (true) {
    auto verdict = verify(options.config, options.node.data);
    const bool late = std::chrono::steady_clock::now() >= until;
    // Nodes make the tables of the data when they start, which may be just now.
    if (!verdict && (late || verdict.error().code == Code::bad_url)) return fail(verdict.error());
    if (verdict && (exact(*verdict) || hopeless(*verdict) || late)) {
      std::fputs((options.json ? to_json(*verdict) : to_text(*verdict)).c_str(), stdout);
      return exact(*verdict) ? kOk : kError;
    }
    std::this_thread::sleep_for(Millis(200));
  }
}

int start(const std::vector<std::string>& words) {
  const Parsed parsed = parse_command_line(words);
  if (!parsed.help.empty()) {
    std::fputs(parsed.help.c_str(), stdout);
    return kOk;
  }
  if (!parsed.wrong.empty()) {
    std::fprintf(stderr, "warehouse: %s; see 'warehouse --help'\n", parsed.wrong.c_str());
    return kUsage;
  }
  switch (parsed.options.command) {
    case Options::Command::node: return run_node(parsed.options);
    case Options::Command::generate: return run_generator(parsed.options);
    case Options::Command::verify: break;
  }
  return run_verify(parsed.options);
}

}  // namespace
}  // namespace baton::warehouse

int main(int argc, char** argv) {
  try {
    return baton::warehouse::start(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "warehouse: internal error: %s\n", problem.what());
    return 1;
  }
}
