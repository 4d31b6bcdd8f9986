#pragma once

#include <memory>
#include <string>
#include <vector>

#include <libpq-fe.h>

#include "sql/value.h"

namespace baton::sql {

// The values as libpq takes them. They must outlive it.
class BATON_EXPORT PostgresParameters {
 public:
  explicit PostgresParameters(const Values& values);

  [[nodiscard]] int count() const { return static_cast<int>(pointers_.size()); }
  [[nodiscard]] const Oid* types() const { return types_.data(); }
  [[nodiscard]] const char* const* pointers() const { return pointers_.data(); }
  [[nodiscard]] const int* lengths() const { return lengths_.data(); }
  [[nodiscard]] const int* formats() const { return formats_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<Oid> types_;
  std::vector<const char*> pointers_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, ClearResult>;

// The rows of a result in text format, by the types of its columns.
[[nodiscard]] Rows rows_of(PostgresResult result);

}  // namespace baton::sql
