/* Writes the report of a month once, whatever number of machines run this. */

#include <baton/baton.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>

static int fail(const char *what, const char *why) {
  fprintf(stderr, "report: %s: %s\n", what, why);
  return 1;
}

/* Under the fence: 1 if the lease may still write, 0 if somebody newer has come. */
static int passes_fence(sqlite3 *data, const char *sql, const char *lease) {
  sqlite3_stmt *check = NULL;
  int row = 0;
  sqlite3_prepare_v2(data, sql, -1, &check, NULL);
  sqlite3_bind_text(check, 1, lease, -1, SQLITE_STATIC);
  while (sqlite3_step(check) == SQLITE_ROW) row = 1; /* to its end */
  return sqlite3_finalize(check) == SQLITE_OK && row;
}

static int write_report(sqlite3 *data, const char *month, const char *fence) {
  const char *insert = "INSERT OR IGNORE INTO report VALUES (?1)";
  sqlite3_stmt *statement = NULL;
  sqlite3_exec(data, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (!passes_fence(data, baton_fence_check_sql(BATON_SQLITE), fence)) {
    sqlite3_exec(data, "ROLLBACK", NULL, NULL, NULL);
    return fail(month, "somebody newer has written, or there is no fence");
  }
  sqlite3_prepare_v2(data, insert, -1, &statement, NULL);
  sqlite3_bind_text(statement, 1, month, -1, SQLITE_STATIC);
  sqlite3_step(statement);
  if (sqlite3_finalize(statement) != SQLITE_OK) {
    fail(month, sqlite3_errmsg(data));
    sqlite3_exec(data, "ROLLBACK", NULL, NULL, NULL);
    return 1;
  }
  return sqlite3_exec(data, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : 1;
}

static int report(baton_client *client, sqlite3 *data, const char *month) {
  baton_acquire_options options = BATON_ACQUIRE_OPTIONS_INIT;
  baton_error error = BATON_ERROR_INIT;
  baton_lease *lease = NULL;
  char name[64];
  char fence[1024];
  struct pollfd lost = {-1, POLLIN, 0};
  int failed = 0;

  snprintf(name, sizeof(name), "report/%s", month);
  options.wait_ms = 5000;
  if (baton_acquire(client, name, &options, &lease, &error) != BATON_OK) {
    return fail(name, error.message);
  }
  baton_lease_fd(lease, &lost.fd, NULL);
  if (poll(&lost, 1, 0) > 0) { /* as an event loop would, while the work goes on */
    failed = fail(name, "the lock is lost");
  } else if (baton_lease_fence_text(lease, fence, sizeof(fence)) >= sizeof(fence)) {
    failed = fail(name, "the text for the fence is too long");
  } else {
    failed = write_report(data, month, fence);
  }
  if (!failed) printf("%s: token %llu\n", name, (unsigned long long)baton_lease_token(lease));
  if (baton_lease_release(lease, NULL, &error) != BATON_OK) fail(name, error.message);
  baton_lease_free(lease, NULL);
  return failed;
}

int main(int count, char **arguments) {
  baton_error error = BATON_ERROR_INIT;
  baton_client *client = NULL;
  sqlite3 *data = NULL;
  int failed = 0;

  if (count != 2) return fail("usage", "report MONTH");
  sqlite3_open("report.db", &data);
  sqlite3_busy_timeout(data, 5000);
  sqlite3_exec(data, "CREATE TABLE IF NOT EXISTS report (month TEXT PRIMARY KEY)", 0, 0, NULL);
  if (baton_install_fence("sqlite:report.db", &error) != BATON_OK) {
    failed = fail("report.db", error.message);
  } else if (baton_open("sqlite:locks.db", NULL, &client, &error) != BATON_OK) {
    failed = fail("locks.db", error.message);
  } else {
    failed = report(client, data, arguments[1]);
    baton_close(client, NULL);
  }
  sqlite3_close(data);
  return failed;
}
