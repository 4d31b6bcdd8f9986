#pragma once

// Where a whole platform is: for the commands that look at all services at once. The services
// themselves each know their own database only.

#include <memory>
#include <string>
#include <string_view>

#include "baton/result.h"
#include "sql/connection.h"

namespace baton::documents {

struct Places {
  std::string directory = "documents-data";  // of the SQLite files, the spool and what `up` writes
  std::string postgres;  // postgres://…/any: the databases are beside it; empty: SQLite
  std::string rabbitmq;  // empty: the embedded broker
  std::string prefix = "documents_";  // of the names of the databases on PostgreSQL

  [[nodiscard]] std::string database(std::string_view service) const;
  [[nodiscard]] std::string broker() const;
  [[nodiscard]] std::string spool() const { return directory + "/spool"; }
  [[nodiscard]] std::string log_file(std::string_view instance) const;
  [[nodiscard]] std::string run_file(std::string_view instance) const;

  // To read only; an error if it is not there.
  [[nodiscard]] Result<std::unique_ptr<sql::Connection>> look_into(std::string_view service) const;
};

// Makes the directories, or on PostgreSQL the databases, that are missing.
[[nodiscard]] Result<void> prepare(const Places& places);

}  // namespace baton::documents
