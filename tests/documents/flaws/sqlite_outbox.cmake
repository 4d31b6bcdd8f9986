# Events are added in a transaction of their own, behind the one that they belong to.
set(FILE src/outbox/sqlite_outbox.cc)
set(REPLACE_1 [[#include "store/sqlite/database.h"]])
set(WITH_1 [[#include "store/sqlite/database.h"

#include "documents/flaw.h"]])
set(REPLACE_2 [[  std::vector<std::string> ids;
  if (rows.empty()) return ids;
  auto statement = Statement]])
set(WITH_2 [[  std::vector<std::string> ids;
  if (rows.empty()) return ids;
  const bool apart = baton::test::flawed("outbox_apart");
  if (apart) sqlite3_exec(transaction, "COMMIT", nullptr, nullptr, nullptr);
  baton::test::die_at("before_the_event");
  if (apart) sqlite3_exec(transaction, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  auto statement = Statement]])
