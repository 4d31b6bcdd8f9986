// The example of docs/scheduler.md, as it is printed there.

#include <gtest/gtest.h>
#include <signal.h>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

class JobsExample : public ::testing::Test {
 protected:
  std::unique_ptr<Process> node(const std::string& id, const std::string& config) {
    return std::make_unique<Process>(ProcessOptions{
        .argv = {BATON_JOBS_EXAMPLE, "sqlite:" + (dir_ / "jobs.db").string(), config, id}});
  }
  TempDir dir_{"jobs-example"};
};

TEST_F(JobsExample, two_nodes_share_the_observers_and_end_when_asked) {
  auto a = node("node-a", BATON_JOBS_YAML);
  auto b = node("node-b", BATON_JOBS_YAML);
  for (auto* one : {a.get(), b.get()}) {
    EXPECT_TRUE(one->wait_for_out("Lock acquired for: wes-observer-poll")) << one->err();
    EXPECT_TRUE(one->wait_for_out("Job completed: order-observer-poll")) << one->err();
    EXPECT_TRUE(one->wait_for_out("Cycle completed: observer"));
  }
  EXPECT_NE(a->out().find("INFO  [node-a] Lock acquired for: "), std::string::npos);
  for (auto* one : {a.get(), b.get()}) {
    one->kill(SIGTERM);
    const auto status = one->wait();
    ASSERT_TRUE(status);
    EXPECT_TRUE(status->success()) << status->describe();
  }
}

TEST_F(JobsExample, a_misspelt_section_is_one_clear_line) {
  const auto path = dir_ / "bad.yaml";
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("scheduler:\n  order-obsever:\n    enabled: false\n", file);
  fclose(file);
  auto bad = node("node-a", path.string());
  const auto status = bad->wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 1);
  EXPECT_NE(bad->err().find("line 2: section 'order-obsever' speaks for no job"), std::string::npos)
      << bad->err();
}

}  // namespace
}  // namespace baton::test
