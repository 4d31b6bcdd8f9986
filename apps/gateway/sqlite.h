#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "baton/result.h"

struct sqlite3;

namespace baton::gateway {

// One connection to an SQLite file. Not thread-safe.
class Sqlite {
 public:
  using Value = std::variant<std::int64_t, std::string>;
  using Row = std::vector<Value>;

  // Made if it is not there, with a write-ahead log, every commit durable.
  [[nodiscard]] static Result<std::unique_ptr<Sqlite>> open(const std::string& path);

  // ?1, ?2, … are the values.
  Result<std::vector<Row>> query(std::string_view sql, const std::vector<Value>& values = {});
  Result<void> script(const std::string& sql);

  // Commits if `body` gives no error.
  Result<void> transaction(const std::function<Result<void>()>& body);

  [[nodiscard]] std::int64_t changes() const;  // rows that the last statement wrote
  [[nodiscard]] sqlite3* handle() const { return connection_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Sqlite(sqlite3* connection) : connection_(connection) {}
  Result<void> use_wal();
  [[nodiscard]] Error problem(std::string_view doing) const;

  std::unique_ptr<sqlite3, Close> connection_;
};

[[nodiscard]] inline const std::string& text(const Sqlite::Row& row, std::size_t column) {
  return std::get<std::string>(row[column]);
}
[[nodiscard]] inline std::int64_t number(const Sqlite::Row& row, std::size_t column) {
  return std::get<std::int64_t>(row[column]);
}

}  // namespace baton::gateway
