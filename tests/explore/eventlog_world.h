#pragma once

// The production class of eventlog/frontier.h in every order of events: writers that open the log,
// draw positions, commit, roll back or are prepared first, one after the other on one session or
// straight into a leaf; a reader that reads the sequence, lists the locks, reads rows and saves its
// progress with what it did; a reader that crashes, a server that crashes, and a database that is
// restored from a dump.
//
// In every state: no position up to the frontier can still become visible, every row is handled
// once, in the order of positions, no committed row is left behind the progress, and the frontier
// waits only for transactions that have opened the log. From every state there is a way to the end,
// where every committed row has been handled.

#include <string>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

struct LogWriter {
  int rows = 1;
  int session = 0;          // writers of one session run one after the other
  bool into_leaf = false;   // names the leaf, and locks only that
  bool prepared = false;    // two-phase commit
  bool rolls_back = false;  // may
};

struct LogSetting {
  std::string title;
  std::vector<LogWriter> writers;
  int page = 10;                 // rows
  bool prepare_renames = false;  // as servers before 14.1
  int reader_crashes = 0;
  int server_crashes = 0;
  int restores = 0;
};

[[nodiscard]] std::vector<LogSetting> log_settings();
[[nodiscard]] Report explore_log(const LogSetting& setting);

}  // namespace baton::explore
