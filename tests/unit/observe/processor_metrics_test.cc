#include "baton/processor_metrics.h"

#include <cstdlib>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "baton/event_log.h"
#include "sql/connection.h"
#include "sql/transaction.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::observe {
namespace {

using namespace std::chrono_literals;
using test::poll_until;

class ProcessorMetricsTest : public ::testing::Test {
 protected:
  // The value of one series; -1 if it is not there.
  [[nodiscard]] double value(const std::string& name) const {
    return series("baton_processor_" + name + "{processor=\"totals\"}");
  }
  [[nodiscard]] double series(const std::string& name) const {
    const std::string text = "\n" + metrics->text();
    const auto found = text.find("\n" + name + " ");
    return found == std::string::npos ? -1 : std::atof(text.c_str() + text.find(' ', found));
  }

  const test::TempDir dir_{"processor-metrics"};
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
};

TEST_F(ProcessorMetricsTest, a_processor_is_shown_as_its_database_shows_it) {
  const ProcessorMetrics processors(metrics, "");
  const std::vector<ProcessorState> states{{.name = "totals",
                                            .status = "PAUSED",
                                            .position = 40,
                                            .head = 47,
                                            .lag = 7,
                                            .oldest_age = 90s,
                                            .seen_ago = 2s,
                                            .stalled_for = 12s}};
  processors.show(states);
  EXPECT_EQ(value("position"), 40);
  EXPECT_EQ(value("lag"), 7);
  EXPECT_EQ(value("oldest_age_seconds"), 90);
  EXPECT_EQ(value("paused"), 1);
  EXPECT_EQ(value("stalled_seconds"), 12);
  EXPECT_EQ(value("owner_silent_seconds"), 2);
  EXPECT_EQ(value("errors_total"), 0);
  processors.count_error("totals");
  EXPECT_EQ(value("errors_total"), 1);

  const std::string file = (dir_ / "metrics.txt").string();
  std::ofstream(file) << metrics->text();
  const auto checked = test::run({.argv = {"sh", "-c", "promtool check metrics < \"$0\"", file}});
  EXPECT_TRUE(checked.status.success()) << checked.out << checked.err;
  EXPECT_EQ(checked.out + checked.err, "");
}

TEST_F(ProcessorMetricsTest, the_database_is_read_now_and_then_also_if_it_comes_later) {
  const std::string path = (dir_ / "log.db").string();
  const ProcessorMetrics processors(metrics, "sqlite:" + path, 5ms);
  ASSERT_TRUE(poll_until([&] { return series("baton_processor_read_failures_total") >= 1; }));
  std::ofstream(path).flush();
  const auto connection = sql::Connection::open("sqlite:" + path).value();
  install_event_log(connection->sqlite()).value();
  connection->script("INSERT INTO event_processor (name, kind) VALUES ('totals', 'view')").value();
  EXPECT_TRUE(poll_until([&] { return value("lag") == 0; }));
  const EventLog log;
  const std::vector<Event> events{{.type = "Added"}, {.type = "Added"}};
  connection
      ->transaction([&](sql::Transaction&) -> Result<void> {
        auto done = log.append(connection->sqlite(), "s", events);
        if (!done) return done.error();
        return {};
      })
      .value();
  EXPECT_TRUE(poll_until([&] { return value("lag") == 2; }));
}

}  // namespace
}  // namespace baton::observe
