#include "apps/warehouse/database.h"

#include <charconv>
#include <mutex>

#include "apps/common/transaction.h"
#include "apps/warehouse/open_database.h"
#include "baton/locks.h"

namespace baton::warehouse {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& url,
                                                 const DatabaseOptions& options) {
  if (url.starts_with(kSqlite) && url.size() > kSqlite.size()) {
    return open_sqlite(url.substr(kSqlite.size()), options);
  }
  if (url.starts_with("postgres://") || url.starts_with("postgresql://")) {
    return open_postgres(url, options);
  }
  return Error{.code = Code::bad_url,
               .message = "the " + options.what + " is sqlite:PATH or postgres://…, not '" +
                          redact_url(url) + "'"};
}

Result<void> Database::transaction(const std::function<Result<void>()>& body) {
  // SQLite: a transaction that began as a reader may find that it cannot write any more.
  const auto* const begin = kind() == Kind::sqlite ? "BEGIN IMMEDIATE" : "BEGIN";
  return apps::in_transaction([this](const std::string& sql) { return script(sql); }, begin, body);
}

std::int64_t number(const Database::Row& row, std::size_t column) {
  std::int64_t value = 0;
  const std::string& text = row[column];
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Connections::Idle {
  std::mutex mutex;
  std::vector<std::unique_ptr<Database>> databases;
};

Connections::Connections(std::string url, DatabaseOptions options)
    : url_(std::move(url)), options_(std::move(options)), idle_(std::make_shared<Idle>()) {}

Result<std::unique_ptr<Database>> Connections::take() {
  {
    const std::lock_guard lock(idle_->mutex);
    while (!idle_->databases.empty()) {
      auto database = std::move(idle_->databases.back());
      idle_->databases.pop_back();
      if (database->still_there()) return database;
    }
  }
  return Database::open(url_, options_);
}

void Connections::give_back(std::unique_ptr<Database> database) {
  constexpr std::size_t kKept = 2;
  const std::lock_guard lock(idle_->mutex);
  if (idle_->databases.size() < kKept) idle_->databases.push_back(std::move(database));
}

}  // namespace baton::warehouse
