#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "baton/clock.h"
#include "baton/fence_token.h"
#include "baton/result.h"
#include "baton/store.h"

namespace baton::warehouse {

// Under which lease something is written.
struct Guard {
  std::vector<FenceToken> tokens;  // Lease::tokens()
  [[nodiscard]] Token token() const { return tokens.empty() ? 0 : tokens.front().token; }
};

struct DatabaseOptions {
  std::string what;                  // "source" or "data", for messages
  bool only_read = false;            // and never made if it is not there
  Millis statement_timeout{10'000};  // no statement takes longer

  // A server ends the session of a client that stands still in a transaction for longer, so that it
  // keeps nobody waiting at the fence; 0: never. SQLite has no server.
  Millis idle_in_transaction{0};
};

// One connection to a SQLite file or a PostgreSQL server. It is never mended: after an error throw
// it away and open another. Not thread-safe.
class Database {
 public:
  using Value = std::variant<std::int64_t, std::string>;
  using Row = std::vector<std::string>;
  enum class Kind : std::uint8_t { sqlite, postgres };

  // sqlite:PATH or postgres://…. An error names the URL without its password.
  [[nodiscard]] static Result<std::unique_ptr<Database>> open(const std::string& url,
                                                              const DatabaseOptions& options);
  virtual ~Database() = default;
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // $1, $2, … are the values. Numbers come back in decimal, NULL as nothing.
  virtual Result<std::vector<Row>> query(const std::string& sql,
                                         const std::vector<Value>& values) = 0;
  Result<std::vector<Row>> query(const std::string& sql) { return query(sql, {}); }

  // Several statements without values.
  virtual Result<void> script(const std::string& sql) = 0;

  virtual Result<void> install_fence() = 0;
  virtual Result<void> fence(const Guard& guard) = 0;  // first in a transaction

  // False if the server has hung up since it was last used.
  [[nodiscard]] virtual bool still_there() = 0;
  [[nodiscard]] virtual Kind kind() const = 0;

  // Commits if `body` gives no error.
  Result<void> transaction(const std::function<Result<void>()>& body);
};

[[nodiscard]] std::int64_t number(const Database::Row& row, std::size_t column);

// The connections to one database, used again and again.
class Connections {
 public:
  Connections(std::string url, DatabaseOptions options);

  Result<std::unique_ptr<Database>> take();
  void give_back(std::unique_ptr<Database> database);  // only if all went well

 private:
  struct Idle;
  const std::string url_;
  const DatabaseOptions options_;
  std::shared_ptr<Idle> idle_;
};

}  // namespace baton::warehouse
