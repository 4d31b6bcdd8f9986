// What the docs print under a command is what the command says. Numbers and times differ from run
// to run and are not compared, nor is what is said on stderr while something is waited for.

#include <fstream>
#include <regex>
#include <sstream>

#include "integration/cli/cli_support.h"
#include "integration/docs/docs_page.h"

namespace baton::test {
namespace {

struct Example {
  std::string command;
  std::string printed;
};

std::vector<Example> examples_in(const std::string& block) {
  std::vector<Example> examples;
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("$ ")) {
      examples.push_back({.command = line.substr(2)});
    } else if (!examples.empty() && !line.starts_with("waiting for ")) {
      examples.back().printed += line + "\n";
    }
  }
  return examples;
}

// Without what is another each time.
std::string lasting(std::string text) {
  text = std::regex_replace(text, std::regex(R"(\d{4}-\d\d-\d\dT[\d:.]+Z)"), "TIME");
  text = std::regex_replace(text, std::regex(R"(\((\d+(ms|[smh]))+\))"), "(SPAN)");
  return std::regex_replace(text, std::regex(R"(\b(term|token) \d+)"), "$1 N");
}

class DocsConsole : public CliTest {
 protected:
  [[nodiscard]] Finished shell(const std::string& command) const {
    auto made = options({});
    made.argv = {"/bin/sh", "-c", command};
    made.env["PATH"] =
        std::filesystem::path(BATON_PROGRAM).parent_path().string() + ":" + std::getenv("PATH");
    return run(made);
  }
  void expect_as_printed(const Example& example) const {
    const Finished done = shell(example.command);
    if (example.printed.starts_with("baton: ")) {
      EXPECT_EQ(done.err, example.printed) << example.command;
    } else {
      EXPECT_EQ(lasting(done.out), lasting(example.printed)) << example.command << done.err;
      EXPECT_TRUE(done.status.success()) << example.command << done.err;
    }
  }
};

TEST_F(DocsConsole, of_the_policy_page_is_as_printed) {
  const std::string docs = page("policy.md");
  const auto policies = blocks(docs, "yaml");
  const auto consoles = blocks(docs, "console");
  ASSERT_EQ(policies.size(), 1U);
  ASSERT_EQ(consoles.size(), 2U);
  std::ofstream(dir_ / "locks.yaml") << policies[0];
  auto good = examples_in(consoles[0]);
  ASSERT_EQ(good.size(), 3U);
  expect_as_printed(good[0]);
  expect_as_printed(good[1]);
  EXPECT_TRUE(
      shell("baton policy show > shown.yaml && baton policy check shown.yaml").status.success());
  std::ofstream(dir_ / "locks.yaml")
      << std::regex_replace(policies[0], std::regex("max-ttl"), "max_ttl");
  expect_as_printed(examples_in(consoles[1]).at(0));
}

TEST_F(DocsConsole, of_the_election_page_is_as_printed) {
  const auto examples = examples_in(blocks(page("election.md"), "console").at(0));
  ASSERT_EQ(examples.size(), 4U);
  EXPECT_EQ(examples[0].command.find("baton elect outbox --node pod-7 -- ./publisher"), 0U);
  std::vector<std::unique_ptr<Process>> pods;
  for (const std::string pod : {"pod-7", "pod-8", "pod-9"}) {
    pods.push_back(start({"elect", "outbox", "--node", pod, "--ttl", "1h", "--", "sleep", "1000"}));
    const std::string waiting = std::to_string(pods.size() - 1) + " waiting";
    ASSERT_TRUE(poll_until([&] {
      return baton({"leader", "show", "outbox"}).out.find(waiting) != std::string::npos;
    })) << pods.back()->err();
  }
  expect_as_printed(examples[1]);
  expect_as_printed(examples[2]);
  EXPECT_TRUE(pods[1]->wait_for_err("leading outbox")) << pods[1]->err();
  expect_as_printed(examples[3]);
}

// With a store of our own in the place of the reader's.
TEST_F(DocsConsole, of_the_readme_works) {
  for (const auto* script : {"report.sh", "publisher"}) {
    std::ofstream(dir_ / script) << "#!/bin/sh\nexit 0\n";
    std::filesystem::permissions(dir_ / script, std::filesystem::perms::owner_all);
  }
  int commands = 0;
  for (const auto& block : blocks(page("../README.md"), "console")) {
    for (const auto& example : examples_in(block)) {
      if (!example.command.starts_with("baton ")) continue;
      ++commands;
      const Finished done = shell(example.command);
      // The doctor may find something on this machine.
      const bool doctor = example.command.find("doctor") != std::string::npos;
      EXPECT_TRUE(done.status.success() || (doctor && done.status.code == 1))
          << example.command << done.err;
    }
  }
  EXPECT_GE(commands, 8);
}

TEST_F(DocsConsole, of_an_error_as_json_is_as_printed) {
  const auto printed = blocks(page("cli.md"), "json").at(0);
  auto holder = hold("job", "echo ready; exec sleep 1000", {"--owner", "web-1:4711"});
  EXPECT_EQ(lasting(baton({"run", "job", "--json", "--", "true"}).err), lasting(printed));
}

}  // namespace
}  // namespace baton::test
