#include <sqlite3.h>

#include "cli/fence_database.h"

namespace baton::cli {
namespace {

constexpr int kBusyMillis = 5000;

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

Error explain(sqlite3* database, const std::string& path) {
  const int code = sqlite3_errcode(database) & 0xFF;
  const std::string why = sqlite3_errmsg(database);
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    return {.code = Code::unavailable,
            .message = path + " is busy with another transaction; try again",
            .retryable = true};
  }
  return {.code = Code::bad_store, .message = "cannot use " + path + ": " + why};
}

class SqliteFence final : public FenceDatabase {
 public:
  SqliteFence(std::unique_ptr<sqlite3, Close> database, std::string path)
      : database_(std::move(database)), path_(std::move(path)) {}

  Result<void> install() override { return install_fence(database_.get()); }

  Result<Token> highest() override {
    auto highest = highest_fenced(database_.get());
    if (!highest) return hint(highest.error());
    return highest;
  }

  Result<void> check(std::span<const FenceToken> tokens) override {
    if (auto ok = execute("BEGIN IMMEDIATE"); !ok) return ok;
    auto verdict = fence(database_.get(), tokens);
    (void)execute("ROLLBACK");
    if (!verdict) return hint(verdict.error());
    return verdict;
  }

 private:
  Result<void> execute(const char* sql) {
    if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return explain(database_.get(), path_);
  }

  // The library tells a programmer what to call; here it is an operator who reads.
  Error hint(Error error) const {
    if (error.message.find("baton_fence") != std::string::npos ||
        error.message.find("has no fence") != std::string::npos) {
      error.code = Code::bad_store;
      error.message = path_ + " has no fence; run 'baton fence install --database …' first";
    }
    return error;
  }

  std::unique_ptr<sqlite3, Close> database_;
  std::string path_;
};

}  // namespace

// The file must be there: a typing error must not make an empty database that accepts any token.
Result<std::unique_ptr<FenceDatabase>> open_sqlite_fence(std::string_view url) {
  std::string path(url.substr(url.find(':') + 1));
  if (path.starts_with("///")) path.erase(0, 2);
  if (path.empty() || path.starts_with("//")) {
    return Error{.code = Code::bad_url, .message = "write sqlite:PATH, as sqlite:shop.db"};
  }
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<sqlite3, Close> database(opened);
  if (code != SQLITE_OK) {
    return Error{.code = Code::bad_store,
                 .message = "cannot open " + path + ": " + sqlite3_errmsg(opened)};
  }
  sqlite3_busy_timeout(opened, kBusyMillis);
  // Reading its first page tells a database from any other file.
  if (sqlite3_exec(opened, "SELECT 1 FROM sqlite_schema", nullptr, nullptr, nullptr) != SQLITE_OK) {
    return explain(opened, path);
  }
  return std::unique_ptr<FenceDatabase>(new SqliteFence(std::move(database), path));
}

}  // namespace baton::cli
