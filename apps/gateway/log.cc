#include "apps/gateway/log.h"

namespace baton::gateway {
namespace {

observe::Logger& logger() {
  static observe::Logger logger;
  return logger;
}

}  // namespace

void open_log(observe::LogOptions options) {
  static observe::Log log(std::move(options));
  logger() = log.named("baton.gateway");
}

const observe::Logger& log() { return logger(); }

}  // namespace baton::gateway
