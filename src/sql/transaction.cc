#include "sql/transaction.h"

namespace baton::sql {
namespace {

constexpr Millis kRollbackLimit{1'000};

Error over() {
  return {.code = Code::bad_request, .message = "this transaction has ended already"};
}

}  // namespace

Result<Transaction> Transaction::begin(Connection& connection, By by) {
  if (connection.in_transaction_) {
    return Error{.code = Code::bad_request,
                 .message = connection.about("this connection is in a transaction already")};
  }
  connection.sqlstate_.clear();
  if (auto usable = connection.check_usable(); !usable) return usable.error();
  if (auto begun = connection.begin(connection.limit(by)); !begun) return begun.error();
  connection.in_transaction_ = true;
  connection.failure_.reset();
  return Transaction(connection);
}

Transaction::~Transaction() {
  if (connection_ != nullptr) (void)rollback(BootClock::now() + kRollbackLimit);
}

void Transaction::end() {
  connection_->in_transaction_ = false;
  connection_->failure_.reset();
  connection_ = nullptr;
}

Result<void> Transaction::fence(std::span<const FenceToken> tokens, By by) {
  if (connection_ == nullptr) return over();
  connection_->sqlstate_.clear();
  if (auto usable = connection_->check_usable(); !usable) return connection_->noted(usable);
  return connection_->noted(connection_->fence(tokens, connection_->limit(by)));
}

Result<void> Transaction::commit(By by) {
  if (connection_ == nullptr) return over();
  if (connection_->failure_) {
    Error error = *connection_->failure_;
    error.in_doubt = false;
    error.message = "rolled back, because a statement in the transaction failed: " + error.message;
    (void)rollback(by);
    return error;
  }
  connection_->sqlstate_.clear();
  auto done = connection_->commit(connection_->limit(by));
  // A COMMIT that SQLite refuses leaves the transaction open.
  if (!done && connection_->usable() && !connection_->idle()) {
    (void)connection_->rollback(BootClock::now() + kRollbackLimit);
  }
  end();
  return done;
}

Result<void> Transaction::rollback(By by) {
  if (connection_ == nullptr) return over();
  // A session that is lost has been rolled back by the server, or will be.
  auto done = connection_->usable() && !connection_->idle()
                  ? connection_->rollback(connection_->limit(by))
                  : Result<void>();
  end();
  return done;
}

}  // namespace baton::sql
