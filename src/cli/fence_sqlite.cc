#include "cli/fence_database.h"
#include "sql/transaction.h"

namespace baton::cli {
namespace {

constexpr Millis kPatience{5'000};

class SqliteFence final : public FenceDatabase {
 public:
  SqliteFence(std::unique_ptr<sql::Connection> connection, std::string path)
      : connection_(std::move(connection)), path_(std::move(path)) {}

  Result<void> install() override { return install_fence(connection_->sqlite()); }

  Result<Token> highest() override {
    auto highest = highest_fenced(connection_->sqlite());
    if (!highest) return hint(highest.error());
    return highest;
  }

  Result<void> check(std::span<const FenceToken> tokens) override {
    auto transaction = sql::Transaction::begin(*connection_);
    if (!transaction) return transaction.error();
    auto verdict = transaction->fence(tokens);
    if (!verdict) return hint(verdict.error());
    return verdict;
  }

 private:
  // The library tells a programmer what to call; here it is an operator who reads.
  Error hint(Error error) const {
    if (error.message.find("baton_fence") != std::string::npos ||
        error.message.find("has no fence") != std::string::npos) {
      error.code = Code::bad_store;
      error.message = path_ + " has no fence; run 'baton fence install --database …' first";
    }
    return error;
  }

  std::unique_ptr<sql::Connection> connection_;
  std::string path_;
};

}  // namespace

// The file must be there: a typing error must not make an empty database that accepts any token.
Result<std::unique_ptr<FenceDatabase>> open_sqlite_fence(std::string_view url) {
  auto connection =
      sql::Connection::open(std::string(url), {.create = false, .statement_timeout = kPatience});
  if (!connection) return connection.error();
  std::string path(url.substr(url.find(':') + 1));
  return std::unique_ptr<FenceDatabase>(new SqliteFence(std::move(*connection), std::move(path)));
}

}  // namespace baton::cli
