# Does not notice that a transaction was ended inside it, so that the flaw of sqlite_outbox.cmake has
# an effect.
set(FILE src/sql/sqlite_connection.cc)
set(REPLACE_1 [[#include "store/sqlite/location.h"]])
set(WITH_1 [[#include "store/sqlite/location.h"

#include "documents/flaw.h"]])
set(REPLACE_2 [[sqlite3_get_autocommit(connection_.get()) == 0 && ended_ == ended_before_;]])
set(WITH_2 [[sqlite3_get_autocommit(connection_.get()) == 0 &&
         (ended_ == ended_before_ || baton::test::flawed("outbox_apart"));]])
