#pragma once

#include <memory>
#include <string>

#include "store/sqlite/database.h"

namespace baton::broker {

using Database = store::sqlite::Database;
using Statement = store::sqlite::Statement;
using Transaction = store::sqlite::Transaction;
using Blob = store::sqlite::Blob;

// Opens the file of a broker and makes its tables if there are none, one process at a time.
// `bad_store`: not a broker's file, made by a newer Baton, on a network filesystem.
[[nodiscard]] Result<std::unique_ptr<Database>> open_broker_file(const std::string& path,
                                                                 Deadline by);

// The error for a file that was deleted or replaced.
[[nodiscard]] Error moved_away(Database& database);

// A write transaction that waits for others until `by`. Refuses a file that was deleted or replaced
// meanwhile: others would not see what is written there.
[[nodiscard]] Result<Transaction> begin_write(Database& database, Deadline by);

}  // namespace baton::broker
