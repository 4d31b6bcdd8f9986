#pragma once

#include <memory>
#include <string>

#include "baton/broker.h"
#include "harness/slices.h"
#include "support/postgres_server.h"
#include "support/rabbit_server.h"
#include "support/temp_dir.h"

namespace baton::bench {

// Where rows are measured: servers of this run's own, started when first needed, and a directory
// for files.
class Lab {
 public:
  explicit Lab(SliceOptions options) : options_(options) {}

  [[nodiscard]] const SliceOptions& options() const { return options_; }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }
  test::RabbitServer& rabbitmq();    // on disk
  test::PostgresServer& postgres();  // with the durability that is its default

  // An empty database, and its URL.
  std::string new_database(const std::string& name);
  // One with what another one has, to which nobody may be connected.
  std::string copy_database(const std::string& name, const std::string& from);

  // An exchange with one queue of the same name that takes all.
  void declare(Broker& broker, const std::string& name) const;

 private:
  const SliceOptions options_;
  test::TempDir directory_{"bench"};
  std::unique_ptr<test::RabbitServer> rabbitmq_;
  std::unique_ptr<test::PostgresServer> postgres_;
};

void say(const std::string& text);
[[nodiscard]] Deadline soon();

}  // namespace baton::bench
