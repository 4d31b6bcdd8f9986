#pragma once

// What the tests of `baton cron` share: a file of jobs, nodes that run it, and their logs.

#include <csignal>
#include <fstream>
#include <sstream>

#include "integration/cli/cli_support.h"

namespace baton::test {

class CronTest : public CliTest {
 protected:
  // In one step, as editors and deployments do it.
  void write_jobs(const std::string& yaml) const {
    std::ofstream(dir_ / "jobs.new") << yaml;
    std::filesystem::rename(dir_ / "jobs.new", file());
  }
  std::string file() const { return (dir_ / "jobs.yaml").string(); }

  // Returns when it has begun.
  std::unique_ptr<Process> node(const std::string& id, Words extra = {}) const {
    Words words{"cron", file(), "--node", id};
    words.insert(words.end(), extra.begin(), extra.end());
    auto process = start(std::move(words));
    EXPECT_TRUE(process->wait_for_out("CRON_STARTED")) << process->out() << process->err();
    return process;
  }

  // The lines of a file in our directory; none if it is not there.
  Words lines(const std::string& name) const {
    Words found;
    std::ifstream stream(dir_ / name);
    for (std::string line; std::getline(stream, line);) found.push_back(line);
    return found;
  }

  // The lines of a log that contain all parts.
  static Words logged(const Process& process, const Words& parts) {
    Words found;
    std::istringstream stream(process.out());
    for (std::string line; std::getline(stream, line);) {
      bool all = true;
      for (const auto& part : parts) all = all && line.find(part) != std::string::npos;
      if (all) found.push_back(line);
    }
    return found;
  }
  static bool logs(const Process& process, const Words& parts) {
    return poll_until([&] { return !logged(process, parts).empty(); }, patience);
  }

  // The live process that starts the commands of a node; 0 if there is none at the moment.
  static pid_t spawner_of(const Process& node) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(node.pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::ifstream children(task.path() / "children");
      for (pid_t child = 0; children >> child;) {
        std::ifstream file("/proc/" + std::to_string(child) + "/stat");
        std::string stat;
        std::getline(file, stat);
        if (stat.find("(baton-spawner) ") != std::string::npos &&
            stat.find("(baton-spawner) Z") == std::string::npos) {
          return child;
        }
      }
    }
    return 0;
  }

  std::string errors_of(const std::string& yaml) const {
    write_jobs(yaml);
    const auto told = baton({"cron", file(), "--check"});
    EXPECT_EQ(told.status.code, 2) << told.out;
    return told.err;
  }
};

}  // namespace baton::test
