// Work for a leader: writes its term into a SQLite database, behind the fence, as fast as it may.
//
//   fenced_writer DATABASE ALIVE NODE
//
// ALIVE is a file that it keeps locked while it lives. If somebody else has it, two of us work at
// once, and "together" is written. Says "writes TERM" after its first row, and "refused TERM" when
// the fence refuses one; then it waits to be ended.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <sqlite3.h>

#include "baton/fence.h"

namespace {

void say(const char* what, const std::string& term) {
  std::printf("%s %s\n", what, term.c_str());
  std::fflush(stdout);
}

bool sql(sqlite3* database, const std::string& text) {
  return sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

// 0 if written, 1 if refused, 2 if it did not come to that.
int write_once(sqlite3* database, const char* key, const std::string& term, const char* node) {
  if (!sql(database, "BEGIN IMMEDIATE")) return 2;
  const auto ok = baton::fence(database, key, baton::Mode::X, std::stoull(term));
  if (!ok) {
    sql(database, "ROLLBACK");
    return ok.error().code == baton::Code::fenced ? 1 : 2;
  }
  const bool written =
      sql(database, "INSERT INTO work (term, node) VALUES (" + term + ", '" + node + "')") &&
      sql(database, "COMMIT");
  if (!written) sql(database, "ROLLBACK");
  return written ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const char* key = std::getenv("BATON_NAME");
  const char* term_text = std::getenv("BATON_TERM");
  if (argc != 4 || key == nullptr || term_text == nullptr) return 2;
  const std::string term = term_text;
  sqlite3* database = nullptr;
  if (sqlite3_open(argv[1], &database) != SQLITE_OK) return 2;
  sqlite3_busy_timeout(database, 60'000);
  const int alive = open(argv[2], O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (flock(alive, LOCK_EX | LOCK_NB) != 0) {
    sql(database, "INSERT INTO together (term) VALUES (" + term + ")");
    say("together", term);
  }
  bool first = true;
  while (true) {
    const int outcome = write_once(database, key, term, argv[3]);
    if (outcome == 1) break;
    if (outcome == 0 && std::exchange(first, false)) say("writes", term);
    usleep(5'000);
  }
  say("refused", term);
  while (true) pause();
}
