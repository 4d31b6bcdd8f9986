#pragma once

// The tables of a view, and their copies that a rebuild fills. Names are identifiers that need no
// quotes (check_identifier).

#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"
#include "sql/transaction.h"

namespace baton::eventlog {

// Up to 48 characters: room for what is put behind it.
[[nodiscard]] Result<void> check_identifier(std::string_view what, std::string_view name);

// The name of a table's copy.
[[nodiscard]] std::string copy_of(std::string_view table);

// Empty copies, with the columns, keys and indexes of the tables; what was left of earlier ones is
// dropped.
Result<void> make_copies(sql::Transaction& transaction, const std::vector<std::string>& tables);

// The rows of the copies take the place of those of the tables. The tables themselves stay, and so
// do their grants, triggers and whatever depends on them.
Result<void> swap_in_copies(sql::Transaction& transaction, const std::vector<std::string>& tables);

Result<void> empty_tables(sql::Transaction& transaction, const std::vector<std::string>& tables);

}  // namespace baton::eventlog
