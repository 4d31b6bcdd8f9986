#include "apps/common/start.h"
#include "apps/documents/operate/trace.h"
#include "apps/documents/operate/verify.h"
#include "apps/documents/operate/verify_audit.h"
#include "apps/documents/options.h"
#include "apps/documents/services.h"

namespace {

using namespace baton::documents;

baton::Result<int> run(const Options& options) {
  switch (options.command) {
    case Options::Command::service:
      return run_service(find_service(options.settings.service)->make, options.settings);
    case Options::Command::up: return up(options.places, options.up);
    case Options::Command::verify:
      return verify(options.places, options.wait, options.json, options.verify);
    case Options::Command::trace:
      return trace(options.places, options.correlation_id, options.json);
    case Options::Command::verify_audit:
      return verify_audit(options.places, options.known_head, options.json);
  }
  return baton::apps::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  return baton::apps::start("documents", argc, argv, parse_command_line, run);
}
