#pragma once

#include <memory>
#include <string>

#include "baton/locks.h"
#include "harness/slices.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"

namespace baton::bench {

// Where rows are measured: a PostgreSQL server of this run's own, started when first needed, and a
// directory for files.
class Lab {
 public:
  explicit Lab(SliceOptions options) : options_(options) {}

  [[nodiscard]] const SliceOptions& options() const { return options_; }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }
  test::PostgresServer& server();

  // The URL of a new database with Baton's schema. All sessions use the Unix socket.
  std::string new_database(const std::string& name);
  std::string admin_url() { return server().socket_url(); }

 private:
  const SliceOptions options_;
  test::TempDir directory_{"bench"};
  std::unique_ptr<test::PostgresServer> server_;
};

// A store that cannot be opened or does not answer ends the benchmark.
[[nodiscard]] LockClient open_or_throw(const std::string& url);

// Shows progress.
void say(const std::string& text);

}  // namespace baton::bench
