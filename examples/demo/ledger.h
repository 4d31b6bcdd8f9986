#pragma once

// The data that the demo's locks protect: which units of work are done, by whom. It lives in a
// database of its own, as a user's data would, and has a fence of its own.

#include <memory>
#include <string>
#include <vector>

#include "baton/lease.h"

struct sqlite3;

namespace demo {

struct Entry {
  int unit = 0;
  std::string worker;
  baton::Token token = 0;
};

class Ledger {
 public:
  explicit Ledger(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  void create();
  [[nodiscard]] bool is_done(int unit) const;
  [[nodiscard]] std::vector<Entry> done() const;
  [[nodiscard]] std::vector<Entry> refused() const;

  // Nobody is in the middle of a write.
  [[nodiscard]] bool can_write() const;

  // Writes the unit down, fenced by the lease. False if the fence refused it.
  bool write(int unit, const std::string& worker, const baton::Lease& lease);

 private:
  void run(const std::string& sql) const;
  void insert(const char* table, int unit, const std::string& worker, baton::Token token) const;
  [[nodiscard]] std::vector<Entry> read(const char* sql) const;
  sqlite3* database_ = nullptr;
};

}  // namespace demo
