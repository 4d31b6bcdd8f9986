#pragma once

// The log of `baton cron`. A thread that logs never waits for the reader of the log: lines go
// through a queue. When it is full, lines are left out, and the log says how many.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "observe/log.h"

namespace baton::cli {

class LogQueue {
 public:
  explicit LogQueue(observe::LogOptions options);
  ~LogQueue();  // waits for what is left, but not for ever
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Thread-safe.
  void write(observe::LogLevel level, std::string logger, std::string message,
             observe::LogFields fields = {});

 private:
  struct Line {
    observe::LogLevel level;
    std::string logger;
    std::string message;
    observe::LogFields fields;
    std::size_t size;
  };
  // Shared with the thread, which may be left behind in a write that never ends.
  struct Shared {
    explicit Shared(observe::LogOptions options) : log(std::move(options)) {}
    observe::Log log;
    std::mutex mutex;
    std::condition_variable change;
    std::deque<Line> lines;
    std::size_t bytes = 0;
    std::uint64_t dropped = 0;
    bool closing = false;
    bool over = false;
  };
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace baton::cli
