#include <csignal>
#include <cstdio>
#include <stop_token>
#include <thread>

#include "apps/common/ending_signals.h"
#include "apps/common/start.h"
#include "apps/warehouse/options.h"
#include "apps/warehouse/verifier.h"

namespace baton::warehouse {
namespace {

using apps::kError;
using apps::kOk;

Result<int> run_node(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to end
  apps::EndingSignals signals;
  auto node = ObserverNode::start(options.config, options.node);
  if (!node) return node.error();
  signals.wait();
  return kOk;
}

Result<int> run_counter(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  apps::EndingSignals signals;
  std::stop_source ending;
  std::thread([signals, ending]() mutable {  // waits for ever if the counter ends by itself
    signals.wait();
    ending.request_stop();
  })
      .detach();
  if (auto ended = count_events(options.counter, ending.get_token()); !ended) return ended.error();
  return kOk;
}

Result<int> run_generator(const Options& options) {
  auto made = generate(options.config, options.generator);
  if (!made) return made.error();
  std::printf(
      "%lld rows written; %lld transactions came late, the latest %lld ms after the time of its "
      "rows; %lld were too late and were written again\n",
      static_cast<long long>(made->rows), static_cast<long long>(made->late_commits),
      static_cast<long long>(made->latest.count()), static_cast<long long>(made->too_late));
  return kOk;
}

Result<int> run_verify(const Options& options) {
  const auto until = std::chrono::steady_clock::now() + options.verify_wait;
  while (true) {
    auto verdict = verify(options.config, options.node.data, options.counter.effects);
    const bool late = std::chrono::steady_clock::now() >= until;
    // Nodes make the tables of the data when they start, which may be just now.
    if (!verdict && (late || verdict.error().code == Code::bad_url)) return verdict.error();
    if (verdict && (exact(*verdict) || hopeless(*verdict) || late)) {
      std::fputs((options.json ? to_json(*verdict) : to_text(*verdict)).c_str(), stdout);
      return exact(*verdict) ? kOk : kError;
    }
    std::this_thread::sleep_for(Millis(200));
  }
}

Result<int> run(const Options& options) {
  switch (options.command) {
    case Options::Command::node: return run_node(options);
    case Options::Command::count: return run_counter(options);
    case Options::Command::generate: return run_generator(options);
    case Options::Command::verify: break;
  }
  return run_verify(options);
}

}  // namespace
}  // namespace baton::warehouse

int main(int argc, char** argv) {
  using namespace baton::warehouse;
  return baton::apps::start("warehouse", argc, argv, parse_command_line, run);
}
