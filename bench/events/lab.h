#pragma once

#include <memory>

#include "harness/slices.h"
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
  test::RabbitServer& rabbitmq();  // on disk

 private:
  const SliceOptions options_;
  test::TempDir directory_{"bench"};
  std::unique_ptr<test::RabbitServer> rabbitmq_;
};

}  // namespace baton::bench
