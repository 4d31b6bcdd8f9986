#pragma once

#include <map>
#include <string>

#include "core/apply.h"
#include "store/sqlite/lock_file.h"

namespace baton::store::sqlite {

// One batch inside one transaction: loads the names it meets, runs the core on them, and writes
// back those that it changed.
class BatchRun {
 public:
  BatchRun(LockFile& file, core::StoreTime now, std::uint64_t counter)
      : file_(file), now_(now), counter_(counter) {
    table_.last = counter;
  }

  // An error is the file's; what is wrong with one request is its own reply.
  [[nodiscard]] Result<Reply> apply(const Request& request);

  // Whether anything was written.
  [[nodiscard]] Result<bool> write_back();

  [[nodiscard]] core::Effects& effects() { return effects_; }

  // The batch must survive a crash of the machine before anybody is told of it.
  [[nodiscard]] bool must_sync() const { return effects_.durable && !only_endings_; }

  // How many rows there are now that were not before; negative if fewer.
  [[nodiscard]] int rows_added() const { return rows_added_; }

 private:
  struct Row {
    bool stored = false;  // the file has it
    bool dirty = false;
    std::string damage;  // what is wrong with its document
  };
  [[nodiscard]] Result<Row*> load(const std::string& key);

  LockFile& file_;
  core::StoreTime now_;
  std::uint64_t counter_;
  core::LockTable table_;
  core::Effects effects_;
  std::map<std::string, Row, std::less<>> rows_;
  bool only_endings_ = true;
  int rows_added_ = 0;
};

}  // namespace baton::store::sqlite
