// The command of the fleet tests: writes its fire into a SQLite database, behind the fence.
//
//   cron_effect DATABASE DIRECTORY MILLISECONDS
//
// Every start is a row of `starts`. DIRECTORY has a file for each job, which is locked while the
// job works: if another has it, two work at once, and a row of `together` says so. The effect
// becomes a row of `effects`, once for each fire.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sqlite3.h>

#include "baton/fence.h"

namespace {

bool sql(sqlite3* database, const std::string& text) {
  return sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

}  // namespace

int main(int argc, char** argv) {
  const char* job = std::getenv("BATON_JOB");
  const char* fire = std::getenv("BATON_FIRE");
  const char* attempt = std::getenv("BATON_ATTEMPT");
  const char* fence = std::getenv("BATON_FENCE");
  if (argc != 4 || job == nullptr || fire == nullptr || attempt == nullptr || fence == nullptr) {
    return 2;
  }
  const std::string lock = std::string(argv[2]) + "/" + job;
  const int working = open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const bool alone = flock(working, LOCK_EX | LOCK_NB) == 0;
  sqlite3* database = nullptr;
  if (sqlite3_open(argv[1], &database) != SQLITE_OK) return 2;
  sqlite3_busy_timeout(database, 60'000);
  sql(database, "PRAGMA synchronous=OFF");
  const std::string values = "('" + std::string(job) + "', " + fire + ", " + attempt + ")";
  if (!alone) sql(database, "INSERT INTO together VALUES " + values);
  if (!sql(database, "INSERT INTO starts VALUES " + values)) return 3;
  usleep(static_cast<useconds_t>(std::atoi(argv[3])) * 1000);
  const auto tokens = baton::parse_fence_tokens(fence);
  if (!tokens) return 4;
  if (!sql(database, "BEGIN IMMEDIATE")) return 5;
  const auto ok = baton::fence(database, *tokens);
  if (!ok) return sql(database, "ROLLBACK") && ok.error().code == baton::Code::fenced ? 77 : 6;
  // Where an earlier attempt has written and its end was not recorded, there is nothing to do.
  const bool written = sql(database, "INSERT OR IGNORE INTO effects VALUES " + values);
  return written && sql(database, "COMMIT") ? 0 : 7;
}
