#pragma once

// Lines for a reader that may be slow, may not read at all, or may have gone.

#include <cstddef>
#include <memory>
#include <string>

#include "baton/clock.h"

namespace baton::cli {

// Writes on a thread of its own: who adds a line never waits for the reader. Thread-safe.
class LineWriter {
 public:
  // `file` stays the caller's. SIGPIPE has to be ignored.
  explicit LineWriter(int file);

  // Gives the reader a second for what is left. A thread that is still stuck in a write then ends
  // with the process.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // In its turn, with its newline.
  void add(std::string line);

  // As add, but takes the place of the last such line if that was not written yet: of what is only
  // news, the newest is enough, and a reader that does not read cannot make them pile up.
  void add_news(std::string line);

  // So much is not written yet that one should take no more orders that are answered by a line.
  [[nodiscard]] bool full() const;

  // The reader has gone, as far as a write has shown.
  [[nodiscard]] bool broken() const;

  // Becomes readable when full() or broken() has changed; heard() resets it.
  [[nodiscard]] int changed_file() const;
  void heard() const;

 private:
  struct State;
  static void write_all(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace baton::cli
