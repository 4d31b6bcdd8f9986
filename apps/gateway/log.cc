#include "apps/gateway/log.h"

#include <csignal>

namespace baton::gateway {
namespace {

observe::Logger& logger() {
  static observe::Logger logger;
  return logger;
}

}  // namespace

void open_log(observe::LogOptions options) {
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to end
  static observe::Log log(std::move(options));
  logger() = log.named("baton.gateway");
}

const observe::Logger& log() { return logger(); }

}  // namespace baton::gateway
