#pragma once

// Writes the output of commands into the log, line by line. One thread reads all of it as it comes,
// so that no command ever waits for the log. Lines that are too long are cut, and those that are
// too many left out, and the log says so.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "baton/clock.h"
#include "cli/cron/log_queue.h"

namespace baton::cli {

inline constexpr std::size_t kMaxOutputLine = 4096;
inline constexpr double kOutputLinesPerSecond = 500;  // of each stream, after a burst of
inline constexpr double kOutputBurst = 2000;

class OutputCapture {
 public:
  using Id = std::uint64_t;

  explicit OutputCapture(LogQueue& log);
  ~OutputCapture();
  OutputCapture(const OutputCapture&) = delete;
  OutputCapture& operator=(const OutputCapture&) = delete;

  // Takes the reading end of a pipe. Each line carries the fields. Thread-safe, as is finish().
  Id add(int file, observe::LogFields fields);

  // The writers have ended: what is left is logged.
  void finish(Id id);

 private:
  struct Stream {
    int file;
    observe::LogFields fields;
    std::string line;  // that has not ended
    bool cut = false;  // the rest of this line is left out
    double allowance = kOutputBurst;
    Instant at;
    std::uint64_t dropped = 0;
    bool over = false;
  };
  void run(const std::stop_token& stop);
  void read_some(Stream& stream, std::size_t most);
  void take(Stream& stream, std::string_view text);
  void end_line(Stream& stream);
  void tell_dropped(Stream& stream);
  void wake() const;

  LogQueue& log_;
  int wake_;
  std::mutex mutex_;
  std::map<Id, Stream> streams_;
  Id last_ = 0;
  std::jthread thread_;
};

}  // namespace baton::cli
