#include "baton/lock_metrics.h"
#include "baton/locks.h"
#include "baton/metrics_server.h"

int fail(const std::string& why);

int metrics_example(const std::string& url) {
#include "docs/library.md.1.inc"
  return 0;
}
