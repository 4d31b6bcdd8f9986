#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "support/wait.h"

namespace baton::test {

struct ProcessOptions {
  std::vector<std::string> argv;           // argv[0] is looked up in PATH
  std::map<std::string, std::string> env;  // on top of our own environment
  std::vector<std::string> unset;          // variables of our own that it does not get
  std::filesystem::path cwd;               // ours if empty
  std::string user;                        // run as this user, which takes root; ours if empty
};

struct ExitStatus {
  int code = 0;    // meaningful if signal is 0
  int signal = 0;  // what killed it
  bool success() const { return code == 0 && signal == 0; }
  std::string describe() const;
  bool operator==(const ExitStatus&) const = default;
};

// A child process whose standard streams are pipes to us. Output is collected as it comes, so that
// a child never blocks on a full pipe. Killed and reaped at the end of the scope.
//
// One thread may wait while another one kills or looks at the output; input is for one thread.
class Process {
 public:
  // Throws std::system_error if the child cannot be started, also if there is no such program.
  explicit Process(ProcessOptions options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const;

  // Does nothing once the child has been reaped: its pid may be another process by then.
  void kill(int signal);

  // Waits for the end of the child and reaps it; nothing if it still runs after `limit`. All that
  // it wrote is in out() and err() by then.
  std::optional<ExitStatus> wait(std::chrono::nanoseconds limit = patience);
  bool running();

  // Returns false if the child no longer reads.
  bool write(std::string_view text);
  void close_stdin();

  // What the child has written so far.
  std::string out() const;
  std::string err() const;

  // Waits until the output so far contains `text`; false if it ends or `limit` passes without.
  bool wait_for_out(std::string_view text, std::chrono::nanoseconds limit = patience);
  bool wait_for_err(std::string_view text, std::chrono::nanoseconds limit = patience);

 private:
  class Streams;

  pid_t pid_ = -1;
  int stdin_ = -1;
  std::unique_ptr<Streams> streams_;
  struct Reaper;
  std::unique_ptr<Reaper> reaper_;
};

// Stops a process, ours or not, and waits until none of its threads does anything any more: a
// signal takes its time. False if that does not come about.
bool stop_still(pid_t pid);

struct Finished {
  ExitStatus status;
  std::string out;
  std::string err;
};

// Runs a command to its end. Throws if it takes longer than `limit`.
Finished run(ProcessOptions options, std::chrono::nanoseconds limit = 2 * patience);

}  // namespace baton::test
