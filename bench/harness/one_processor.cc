#include "harness/one_processor.h"

#include <cerrno>
#include <system_error>

namespace baton::bench {
namespace {

// The last of those that all of them may use: interrupts go to the first.
cpu_set_t last_of(const cpu_set_t& many) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = CPU_SETSIZE - 1; i >= 0; --i) {
    if (!CPU_ISSET(i, &many)) continue;
    CPU_SET(i, &one);
    break;
  }
  return one;
}

}  // namespace

OneProcessor::OneProcessor(const std::vector<pid_t>& processes) {
  for (const pid_t process : processes) {
    cpu_set_t usual;
    if (sched_getaffinity(process, sizeof usual, &usual) != 0) {
      throw std::system_error(errno, std::system_category(), "sched_getaffinity");
    }
    const cpu_set_t one = last_of(before_.empty() ? usual : before_.front().second);
    if (sched_setaffinity(process, sizeof one, &one) != 0) {
      throw std::system_error(errno, std::system_category(), "sched_setaffinity");
    }
    before_.emplace_back(process, usual);
  }
}

OneProcessor::~OneProcessor() {
  for (const auto& [process, usual] : before_) {
    (void)sched_setaffinity(process, sizeof usual, &usual);
  }
}

}  // namespace baton::bench
