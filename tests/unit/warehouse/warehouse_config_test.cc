#include "apps/warehouse/config.h"

#include <gtest/gtest.h>

namespace baton::warehouse {
namespace {

const Registered order({.name = "order", .event = "E", .table = "orders"});
const Registered inventory({.name = "inventory", .event = "E", .table = "inventory_changes"});
const Registered wes({.name = "wes", .event = "E", .table = "wes_tasks"});

constexpr const char* kObservers = "warehouse:\n  observers:\n    order: [web]\n";

std::string problem(const std::string& yaml) {
  const auto config = parse_config(yaml);
  return config ? "none" : config.error().message;
}

TEST(WarehouseConfig, what_comes_built_in_is_the_design) {
  const Config config = read_config("").value();
  EXPECT_EQ(config.observers.size(), 3U);
  for (const auto& [name, observers] : config.observers) EXPECT_GE(observers.size(), 2U) << name;
  const auto job = config.jobs.configure("order-observer-poll").value();
  ASSERT_TRUE(job.schedule);
  EXPECT_EQ(job.schedule->interval(), Millis(30'000));
  EXPECT_EQ(job.options.lock_ttl, Millis(60'000));
  EXPECT_TRUE(job.options.enabled);
}

TEST(WarehouseConfig, a_type_can_have_a_source_of_its_own) {
  Config config = parse_config(std::string(kObservers) + "  sources:\n    all: sqlite:a\n").value();
  set_source(config, "wes=postgres://u@h/d?x=y").value();
  EXPECT_EQ(config.source_of("order"), "sqlite:a");
  EXPECT_EQ(config.source_of("wes"), "postgres://u@h/d?x=y");
  set_source(config, "postgres://u@h/d?options=x=y").value();
  EXPECT_EQ(config.source_of("order"), "postgres://u@h/d?options=x=y");
}

TEST(WarehouseConfig, every_mistake_is_one_line_that_says_where_and_what) {
  const struct {
    std::string yaml;
    std::string says;
  } cases[] = {
      {"", "line 1"},
      {"warehouse:\n  observers:\n    ordr: [web]\n",
       "line 3: unknown observer type 'ordr'; did you mean 'order'?"},
      {"warehouse:\n  observers:\n    order: []\n", "line 3"},
      {"warehouse:\n  observers:\n    order: [web, web]\n", "line 3: observers of order"},
      {"warehouse:\n  latenes: 5s\n", "line 2: unknown key 'latenes'; did you mean 'lateness'?"},
      {std::string(kObservers) + "  lateness: soon\n", "line 4: lateness must be"},
      {std::string(kObservers) + "  batch: 0\n", "line 4: batch must be a number from 1"},
      {std::string(kObservers) + "  cursor: rowid\n", "line 4: cursor must be time or xid"},
      {std::string(kObservers) + "  sources:\n    orde: sqlite:a\n", "did you mean 'order'?"},
      {std::string(kObservers) + "schedule:\n  a: b\n",
       "line 4: unknown key 'schedule'; did you mean 'scheduler'?"},
      {std::string(kObservers) + "scheduler:\n  observer:\n    fixed-delay: 0\n",
       "line 6: fixed-delay must be above zero"},
      {std::string(kObservers) + "scheduler:\n  observr:\n    fixed-delay: 1s\n", "observr"},
  };
  for (const auto& wrong : cases) {
    const std::string said = problem(wrong.yaml);
    EXPECT_NE(said.find(wrong.says), std::string::npos) << wrong.yaml << "says: " << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST(WarehouseConfig, a_type_whose_names_could_change_a_statement_is_refused) {
  EXPECT_THROW(Registered({.name = "x", .table = "a; DROP TABLE b"}), std::invalid_argument);
  EXPECT_THROW(Registered({.name = "order", .table = "again"}), std::invalid_argument);
}

}  // namespace
}  // namespace baton::warehouse
