#pragma once

#include <csignal>

namespace baton::apps {

// SIGINT and SIGTERM. Blocked in all threads, so make it before any: they are waited for here.
class EndingSignals {
 public:
  EndingSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() {
    int number = 0;
    sigwait(&set_, &number);
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);  // a second one ends us at once
  }

 private:
  sigset_t set_{};
};

}  // namespace baton::apps
