#pragma once

// What the tests of the command share: the real binary, on a store of the test's own.

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

class CliTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  std::string store() const { return "sqlite:" + (dir_ / "locks.db").string(); }

  // Nothing of the machine's own settings gets in, and a colour never comes out.
  ProcessOptions options(Words words) const {
    words.insert(words.begin(), program_);
    ProcessOptions made{.argv = std::move(words), .cwd = dir_.path(), .user = user_};
    made.env = {{"HOME", dir_.path().string()},
                {"XDG_CONFIG_HOME", ""},
                {"XDG_STATE_HOME", ""},
                {"BATON_STORE", store()}};
    if (store_is_unset_) {
      made.env.erase("BATON_STORE");
      made.unset = {"BATON_STORE"};
    }
    for (const auto& [name, value] : env_) made.env[name] = value;
    return made;
  }

  // No BATON_STORE from now on, until a test sets one.
  void unset_store() {
    env_.erase("BATON_STORE");
    store_is_unset_ = true;
  }

  Finished baton(Words words) const { return run(options(std::move(words))); }

  std::unique_ptr<Process> start(Words words) const {
    return std::make_unique<Process>(options(std::move(words)));
  }

  // Runs `script` under a lock and returns when it says "ready".
  std::unique_ptr<Process> hold(const std::string& name, const std::string& script,
                                Words extra = {}) const {
    Words words{"run", name};
    words.insert(words.end(), extra.begin(), extra.end());
    for (const auto* word : {"--", "sh", "-c"}) words.emplace_back(word);
    words.push_back(script);
    auto process = start(std::move(words));
    EXPECT_TRUE(process->wait_for_out("ready")) << process->err();
    return process;
  }

  static void ends(Process& process, int code) {
    const auto status = process.wait();
    ASSERT_TRUE(status) << "still runs";
    EXPECT_EQ(status->signal, 0);
    EXPECT_EQ(status->code, code) << process.err();
  }

  // One line for people that starts with "baton: ", the same as a code in JSON, and the exit code.
  void refuses(const Words& words, int exit_code, const std::string& code,
               const std::string& part) const {
    const auto text = baton(words);
    EXPECT_EQ(text.status.code, exit_code) << text.err;
    EXPECT_EQ(text.err.rfind("baton: ", 0), 0U) << text.err;
    EXPECT_EQ(text.err.find('\n'), text.err.size() - 1) << "one line: " << text.err;
    EXPECT_NE(text.err.find(part), std::string::npos) << text.err;
    EXPECT_EQ(text.out, "");
    Words in_json = words;
    const auto dashes = std::find(in_json.begin(), in_json.end(), "--");
    in_json.insert(dashes, "--json");
    const auto json = baton(in_json);
    EXPECT_EQ(json.status.code, exit_code) << json.err;
    EXPECT_EQ(json.err.rfind("{\"error\":{\"code\":\"" + code + "\",\"message\":\"", 0), 0U)
        << json.err;
    EXPECT_EQ(json.err.find('\n'), json.err.size() - 1) << "one document: " << json.err;
    EXPECT_EQ(json.out, "");
  }

  // What `--help` says of a command.
  struct Help {
    Words command;      // none for the program itself
    Words subcommands;  // of a noun
    Words options;      // the long ones
    std::string text;
  };

  Help help(const Words& command) const {
    Words words = command;
    words.emplace_back("--help");
    const auto told = baton(words);
    EXPECT_EQ(told.status.code, 0) << told.err;
    EXPECT_EQ(told.err, "");
    Help help{.command = command, .text = told.out};
    std::istringstream lines(told.out);
    bool commands = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] != ' ') commands = line == "Commands:";
      const auto first = line.find_first_not_of(' ');
      if (first != 2) continue;
      if (commands) help.subcommands.push_back(line.substr(first, line.find(' ', first) - first));
      const auto dashes = line.find("--");
      if (line[first] != '-' || dashes == std::string::npos) continue;
      help.options.push_back(line.substr(dashes, line.find(' ', dashes) - dashes));
    }
    return help;
  }

  // Of the program, of every noun, and of every command: so that a new one is not forgotten.
  std::vector<Help> all_help() const {
    std::vector<Help> all{help({})};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Help noun = all[i];
      for (const auto& word : noun.subcommands) {
        Words command = noun.command;
        command.push_back(word);
        all.push_back(help(command));
      }
    }
    return all;
  }

  TempDir dir_{"cli"};
  std::string program_ = BATON_PROGRAM;
  std::string user_;  // ours if empty
  std::map<std::string, std::string> env_;
  bool store_is_unset_ = false;
};

}  // namespace baton::test
