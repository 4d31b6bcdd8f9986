#include "observe/log.h"
#include "json/json.h"

#include <sys/mman.h>
#include <unistd.h>

#include <latch>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace baton::observe {
namespace {

using Json = nlohmann::json;

// A log into a file that the test reads back.
class LogTest : public ::testing::Test {
 protected:
  LogTest() : file_(memfd_create("log", MFD_CLOEXEC)) {}
  ~LogTest() override { close(file_); }

  LogOptions options(LogFormat format = LogFormat::json) const {
    return {.service = "validation-service",
            .node = "Node A",
            .format = format,
            .level = LogLevel::debug,
            .file = file_};
  }

  [[nodiscard]] std::vector<std::string> lines() const {
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(text.empty() || text.ends_with('\n'));
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  [[nodiscard]] Json last() const { return Json::parse(lines().back()); }

  const int file_;
};

TEST_F(LogTest, a_line_is_one_object_with_the_fields_that_aggregators_look_for) {
  Log log(options());
  log.named("consumer").info("EVENT_RECEIVED");
  const Json line = last();
  EXPECT_EQ(line.size(), 6U) << line;
  EXPECT_EQ(line["level"], "INFO");
  EXPECT_EQ(line["logger_name"], "consumer");
  EXPECT_EQ(line["message"], "EVENT_RECEIVED");
  EXPECT_EQ(line["service"], "validation-service");
  EXPECT_EQ(line["node"], "Node A");
  const std::string time = line["@timestamp"];
  EXPECT_EQ(time.size(), std::string("2026-02-17T23:30:08.197Z").size()) << time;
  EXPECT_TRUE(time.starts_with("20") && time.ends_with("Z")) << time;
}

TEST_F(LogTest, every_line_inside_a_scope_carries_its_context_and_no_line_outside) {
  Log log(options());
  const Logger out = log.named("consumer");
  {
    const LogScope event{{"correlationId", "c-1"}, {"eventId", "e-1"}, {"eventType", ""}};
    {
      const LogScope inner{{"documentId", "d-1"}, {"eventId", "e-2"}, {"node", "Node B"}};
      out.info("EVENT_PROCESSED", {{"validationResult", "ok"}});
      const Json line = last();
      EXPECT_EQ(line["correlationId"], "c-1");
      EXPECT_EQ(line["eventId"], "e-2");
      EXPECT_EQ(line["documentId"], "d-1");
      EXPECT_EQ(line["node"], "Node B");
      EXPECT_EQ(line["validationResult"], "ok");
      EXPECT_FALSE(line.contains("eventType"));
    }
    out.info("next");
    EXPECT_EQ(last()["eventId"], "e-1");
    EXPECT_FALSE(last().contains("documentId"));
  }
  out.info("after");
  EXPECT_EQ(last().size(), 6U) << last();
}

TEST_F(LogTest, a_scope_belongs_to_its_thread_and_can_be_taken_to_another) {
  Log log(options());
  const Logger out = log.named("worker");
  const LogScope scope{{"correlationId", "c-1"}};
  std::jthread([&] { out.info("elsewhere"); }).join();
  EXPECT_FALSE(last().contains("correlationId"));
  std::jthread([&, context = LogScope::current()] {
    const LogScope here(context);
    out.info("taken along");
  }).join();
  EXPECT_EQ(last()["correlationId"], "c-1");
}

TEST_F(LogTest, nothing_in_a_value_can_end_the_line_or_forge_a_field) {
  for (const LogFormat format : {LogFormat::json, LogFormat::text}) {
    Log log(options(format));
    const auto before = lines().size();
    log.named("x\n").error("a\n\"},{\x1b[2J \xff \xc2\x85 ä", {{"k\n", "v\r\n\\"}});
    ASSERT_EQ(lines().size(), before + 1);
    const std::string line = lines().back();
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
  Log log(options());
  log.named("x").info("a\n\"\\\xff ä", {{"level", "forged"}});
  EXPECT_EQ(last()["message"], "a\n\"\\\xef\xbf\xbd ä");
  EXPECT_EQ(last()["level"], "INFO");
  EXPECT_EQ(last()["_level"], "forged");
}

TEST_F(LogTest, a_line_is_bounded_however_much_is_logged) {
  LogOptions small = options();
  small.max_line = 2000;
  Log log(std::move(small));
  LogFields many{{"huge", std::string(100'000, 'x')}};
  for (int i = 0; i < 1000; ++i) many.emplace_back("key" + std::to_string(i), "value");
  const LogScope scope(many);
  log.named("x").info(std::string(1'000'000, '\n') + "ä");
  EXPECT_LE(lines().back().size(), 2500U);
  EXPECT_EQ(last()["truncated"], true);
}

TEST_F(LogTest, secrets_are_hidden) {
  Log log(options());
  log.named("x").info("cannot open postgres://app:hunter2@db/shop?password=hunter2&x=1",
                      {{"url", "redis://:hunter2@cache:6379"},
                       {"dbPassword", "hunter2"},
                       {"Authorization", "Bearer hunter2"},
                       {"token", "41"}});
  EXPECT_EQ(lines().back().find("hunter2"), std::string::npos) << lines().back();
  EXPECT_NE(lines().back().find("postgres://app:***@db/shop?password=***&x=1"), std::string::npos)
      << lines().back();
  EXPECT_EQ(last()["token"], "41");
}

TEST_F(LogTest, lines_of_many_threads_never_mix) {
  Log log(options());
  std::latch go(8);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const LogScope scope{{"thread", std::to_string(i)}};
        const Logger out = log.named("x");
        go.arrive_and_wait();
        for (int n = 0; n < 200; ++n) out.info(std::string(500, 'a'));
      });
    }
  }
  const auto all = lines();
  EXPECT_EQ(all.size(), 1600U);
  for (const auto& line : all) EXPECT_TRUE(Json::accept(line)) << line;
}

TEST_F(LogTest, what_is_below_the_level_is_not_written_and_a_logger_without_a_log_is_silent) {
  LogOptions quiet = options();
  quiet.level = LogLevel::warn;
  Log log(std::move(quiet));
  log.named("x").debug("no");
  log.named("x").info("no");
  Logger().error("no");
  EXPECT_TRUE(lines().empty());
  log.named("x").warn("yes");
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(LogTest, words_for_formats_and_levels) {
  EXPECT_EQ(parse_log_format("text"), LogFormat::text);
  EXPECT_EQ(parse_log_format("json"), LogFormat::json);
  EXPECT_FALSE(parse_log_format("xml"));
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
  EXPECT_FALSE(parse_log_level("loud"));
}

// Section 5 of the observer design lists these lines, their levels and the node in front.
struct Row {
  const char* name;  // of the test
  LogLevel level;
  const char* shown;
  const char* message;
};

class ObserverLogRow : public LogTest, public ::testing::WithParamInterface<Row> {};

TEST_P(ObserverLogRow, is_written_at_its_level_with_the_node) {
  Log json(options());
  json.named("scheduler").log(GetParam().level, GetParam().message);
  EXPECT_EQ(last()["level"], GetParam().shown);
  EXPECT_EQ(last()["message"], GetParam().message);
  EXPECT_EQ(last()["node"], "Node A");
  Log text(options(LogFormat::text));
  text.named("scheduler").log(GetParam().level, GetParam().message);
  EXPECT_NE(lines().back().find(" " + std::string(GetParam().shown) + " "), std::string::npos);
  EXPECT_TRUE(lines().back().ends_with(std::string(" [Node A] ") + GetParam().message))
      << lines().back();
}

INSTANTIATE_TEST_SUITE_P(
    section_5, ObserverLogRow,
    ::testing::Values(
        Row{"starting_scheduled_polling_cycle", LogLevel::info, "INFO",
            "Starting scheduled polling cycle for all observer types"},
        Row{"lock_acquired", LogLevel::info, "INFO", "Lock acquired for: order-observer-poll"},
        Row{"completed_polling", LogLevel::info, "INFO",
            "Completed polling for: order-observer-poll"},
        Row{"polling_cycle_completed", LogLevel::info, "INFO",
            "Polling cycle completed for all observer types"},
        Row{"lock_not_acquired", LogLevel::debug, "DEBUG",
            "Lock not acquired for: order-observer-poll (another node is polling)"},
        Row{"lock_released", LogLevel::debug, "DEBUG", "Lock released for: order-observer-poll"},
        Row{"interrupted_while_waiting_for_lock", LogLevel::warn, "WARN",
            "Interrupted while waiting for lock: order-observer-poll"},
        Row{"error_during_polling", LogLevel::error, "ERROR",
            "Error during polling for: inventory-observer-poll"},
        Row{"error_releasing_lock", LogLevel::error, "ERROR",
            "Error releasing lock for: wes-observer-poll"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace baton::observe
