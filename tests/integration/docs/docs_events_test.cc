// docs/events.md, done by somebody who types what it prints.

#include <sqlite3.h>

#include <csignal>
#include <fstream>

#include "integration/cli/cli_support.h"
#include "integration/docs/docs_page.h"

namespace baton::test {
namespace {

class DocsEvents : public CliTest {
 protected:
  DocsEvents() { std::ofstream(dir_ / "shop.yaml") << blocks(text_, "yaml").at(0); }

  [[nodiscard]] ProcessOptions in_dir(const std::string& program, const Words& words = {}) const {
    auto made = options({});
    made.argv = {program};
    made.argv.insert(made.argv.end(), words.begin(), words.end());
    made.env["BATON_BROKER"] = "embedded:broker.db";
    made.env["BATON_STORE"] = "sqlite:locks.db";
    return made;
  }
  [[nodiscard]] std::string order(const std::string& name) const {
    const auto done = run(in_dir(BATON_SHOP_EXAMPLE, {name}));
    EXPECT_TRUE(done.status.success()) << done.err;
    return done.out;
  }
  [[nodiscard]] std::string baton_says(const Words& words) const {
    return run(in_dir(BATON_PROGRAM, words)).out;
  }
  [[nodiscard]] std::string bills() const {
    sqlite3* database = nullptr;
    sqlite3_open((dir_ / "billing.db").c_str(), &database);
    sqlite3_busy_timeout(database, 30'000);
    sqlite3_stmt* count = nullptr;
    sqlite3_prepare_v2(database, "SELECT count(*) FROM bills", -1, &count, nullptr);
    std::string text = "none";
    if (sqlite3_step(count) == SQLITE_ROW) {
      text = reinterpret_cast<const char*>(sqlite3_column_text(count, 0));
    }
    sqlite3_finalize(count);
    sqlite3_close(database);
    return text;
  }

  const std::string text_ = page("events.md");
};

TEST_F(DocsEvents, the_page_prints_the_programs_of_the_example) {
  const auto programs = blocks(text_, "cpp");
  ASSERT_GE(programs.size(), 2U);
  EXPECT_EQ(programs[0], page("../examples/events/shop.cc"));
  EXPECT_EQ(programs[1], page("../examples/events/billing.cc"));
  EXPECT_EQ(blocks(text_, "cmake").at(0), page("../examples/events/CMakeLists.txt"));
  EXPECT_EQ(blocks(text_, "yaml").at(0), page("../examples/events/shop.yaml"));
}

TEST_F(DocsEvents, each_order_has_one_bill_and_its_event_goes_on) {
  EXPECT_EQ(order("order-7"), "order-7 is published\n");
  auto billing = std::make_unique<Process>(in_dir(BATON_BILLING_EXAMPLE));
  ASSERT_TRUE(billing->wait_for_out("order-7: EVENT_PROCESSED")) << billing->err();
  billing->kill(SIGKILL);
  billing = std::make_unique<Process>(in_dir(BATON_BILLING_EXAMPLE));
  EXPECT_EQ(order("order-8"), "order-8 is published\n");
  ASSERT_TRUE(billing->wait_for_out("order-8: EVENT_PROCESSED")) << billing->err();
  EXPECT_EQ(bills(), "2");
  const Process relay(
      in_dir(BATON_PROGRAM, {"relay", "--outbox", "sqlite:billing.db", "--topology", "shop.yaml"}));
  EXPECT_TRUE(poll_until([&] {
    return baton_says({"outbox", "status", "--database", "sqlite:billing.db"})
               .rfind("ok: all events are published\n", 0) == 0;
  })) << relay.out();
  const std::string queues = baton_says({"queue", "list", "shop.yaml"});
  EXPECT_NE(text_.find(queues), std::string::npos) << queues;
  billing->kill(SIGTERM);
  const auto ended = billing->wait();
  EXPECT_TRUE(ended && ended->success()) << billing->err();
}

}  // namespace
}  // namespace baton::test
