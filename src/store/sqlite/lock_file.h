#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/sqlite/database.h"
#include "store/sqlite/document_cache.h"
#include "store/sqlite/machine.h"

namespace baton::store::sqlite {

inline constexpr int kSchemaVersion = 1;

// 0 without a schema.
[[nodiscard]] Result<int> schema_version(Database& database);

// Brings the schema up to kSchemaVersion, one process at a time; refuses a newer one. Gives the
// version it found.
[[nodiscard]] Result<int> migrate(Database& database);

// One connection to a lock file with its schema, and the statements on its two tables. What it does
// belongs to the transaction that its caller has open. Not thread-safe.
class LockFile {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LockFile>> open(const std::string& path,
                                                              const Machine& machine,
                                                              Deadline deadline);

  struct State {
    std::uint64_t counter = 0;
    bool other_boot = false;  // its times mean nothing before adopt()
  };

  // The first call in every transaction: refuses a file that this process must not go on with.
  [[nodiscard]] Result<State> enter();

  // Makes the times of another boot times of this one, in a write transaction that entered with
  // other_boot.
  [[nodiscard]] Result<void> adopt(core::StoreTime now);

  [[nodiscard]] Result<std::optional<std::string>> document(std::string_view key);
  [[nodiscard]] Result<void> save(std::string_view key, std::string_view document);
  [[nodiscard]] Result<void> erase(std::string_view key);
  [[nodiscard]] Result<void> set_counter(std::uint64_t counter);

  // Visits the rows from `first` on in the order of their keys until the visitor says false.
  using Visitor = std::function<bool(std::string_view key, std::string_view document)>;
  [[nodiscard]] Result<void> visit(std::string_view first, const Visitor& visitor);

  [[nodiscard]] Database& database() { return *database_; }
  [[nodiscard]] DocumentCache& remembered() { return remembered_; }

 private:
  LockFile(std::unique_ptr<Database> database, const Machine& machine)
      : database_(std::move(database)), machine_(machine) {}
  [[nodiscard]] Result<void> prepare();

  std::unique_ptr<Database> database_;
  Machine machine_;
  DocumentCache remembered_;
  Statement meta_;
  Statement document_;
  Statement save_;
  Statement erase_;
  Statement set_counter_;
  Statement set_boot_;
  Statement visit_;
};

}  // namespace baton::store::sqlite
