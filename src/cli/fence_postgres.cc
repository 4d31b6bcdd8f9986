#include "cli/fence_database.h"
#include "sql/transaction.h"

namespace baton::cli {
namespace {

class PostgresFence final : public FenceDatabase {
 public:
  explicit PostgresFence(std::unique_ptr<sql::Connection> connection)
      : connection_(std::move(connection)) {}

  Result<void> install() override { return install_fence(connection_->postgres()); }
  Result<Token> highest() override { return highest_fenced(connection_->postgres()); }

  Result<void> check(std::span<const FenceToken> tokens) override {
    auto transaction = sql::Transaction::begin(*connection_);
    if (!transaction) return transaction.error();
    return transaction->fence(tokens);
  }

 private:
  std::unique_ptr<sql::Connection> connection_;
};

}  // namespace

Result<std::unique_ptr<FenceDatabase>> open_postgres_fence(const std::string& url) {
  auto connection = sql::Connection::open(url, {.application = "baton fence"});
  if (!connection) return connection.error();
  return std::unique_ptr<FenceDatabase>(new PostgresFence(std::move(*connection)));
}

}  // namespace baton::cli
