// deploy/systemd: systemd understands every line, the units may do little, and the programs
// understand what they are started with.

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "deploy/deploy_files.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The values of a key of a unit, in order.
std::vector<std::string> values(const std::string& unit, const std::string& key) {
  std::vector<std::string> found;
  std::istringstream lines(unit);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + "=")) found.push_back(line.substr(key.size() + 1));
  }
  return found;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

// The units as they would be installed, with the programs of this build.
class Installed {
 public:
  Installed() {
    for (const char* name :
         {"documents@.service", "documents.target", "baton-cron.service", "baton-elect@.service",
          "baton-relay@.service", "baton-run@.service", "baton-run@.timer"}) {
      write(name, deploy_text(std::string("systemd/") + name));
    }
  }
  void write(const std::string& name, std::string text) const {
    text = replaced(std::move(text), "ExecStart=/usr/bin/documents", "ExecStart=" BATON_DOCUMENTS);
    text = replaced(std::move(text), "ExecStart=/usr/bin/baton", "ExecStart=" BATON_PROGRAM);
    text = replaced(std::move(text), "ExecStartPre=/usr/bin/baton", "ExecStartPre=" BATON_PROGRAM);
    std::ofstream(directory_ / name) << text;
  }
  void write_drop_in(const std::string& unit, const std::string& text) const {
    fs::create_directories(directory_ / (unit + ".d"));
    std::ofstream(directory_ / (unit + ".d") / "override.conf") << text;
  }
  // What systemd says against a unit of this directory; empty: nothing.
  [[nodiscard]] std::string complaints(const std::string& name) const {
    const auto verified = analyze({"verify", (directory_ / name).string()});
    std::string found = verified.status.success() ? "" : "it is refused\n";
    std::istringstream lines(verified.err);
    for (std::string line; std::getline(lines, line);) {
      // Not about the units of this machine.
      if (line.find(directory_.path().string()) != std::string::npos) found += line + "\n";
    }
    return found;
  }
  [[nodiscard]] Finished analyze(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"systemd-analyze", "--no-pager"});
    return run({.argv = arguments,
                .env = {{"SYSTEMD_UNIT_PATH", directory_.path().string() + ":"}},
                .cwd = directory_.path()});
  }

 private:
  TempDir directory_{"units"};
};

TEST(SystemdUnits, systemd_understands_every_line) {
  const Installed installed;
  for (const auto& [service, port] : document_services()) {
    EXPECT_EQ(installed.complaints("documents@" + service + ".service"), "");
  }
  for (const char* unit :
       {"baton-cron.service", "baton-elect@publisher.service", "baton-relay@shop.service",
        "baton-run@report.service", "baton-run@report.timer"}) {
    EXPECT_EQ(installed.complaints(unit), "");
  }
  EXPECT_EQ(installed.complaints("documents.target"), "");
}

TEST(SystemdUnits, a_line_that_systemd_does_not_know_is_found) {
  const Installed installed;
  const std::string unit = deploy_text("systemd/documents@.service");
  installed.write("documents@.service", replaced(unit, "ProtectHome=", "ProtectHomes="));
  EXPECT_NE(installed.complaints("documents@audit.service"), "");
}

TEST(SystemdUnits, have_little_to_attack) {
  const Installed installed;
  for (const std::string unit : {"documents@.service", "baton-cron.service", "baton-elect@.service",
                                 "baton-relay@.service", "baton-run@.service"}) {
    // Of 0 to 10 where 10 is the worst, times ten.
    const auto judged = installed.analyze({"security", "--offline=true", "--threshold=15", unit});
    EXPECT_TRUE(judged.status.success()) << unit << "\n" << judged.out << judged.err;
  }
}

TEST(SystemdUnits, the_drop_in_of_the_page_is_understood_for_each_unit_that_runs_commands) {
  const std::string page = deploy_text("../docs/deploying.md");
  const std::string fence = "\n```ini\n";
  const auto at = page.find(fence);
  ASSERT_NE(at, std::string::npos);
  const auto begin = at + fence.size();
  const std::string drop_in = page.substr(begin, page.find("\n```", begin) + 1 - begin);
  const Installed installed;
  for (const std::string unit :
       {"baton-cron.service", "baton-elect@publisher.service", "baton-run@report.service"}) {
    installed.write_drop_in(unit, drop_in);
    EXPECT_EQ(installed.complaints(unit), "");
    installed.write_drop_in(unit, replaced(drop_in, "ReadWritePaths=", "ReadWritePath="));
    EXPECT_NE(installed.complaints(unit), "") << "it is not read";
  }
}

TEST(SystemdUnits, start_each_service_with_what_it_understands) {
  const std::string unit = deploy_text("systemd/documents@.service");
  for (const auto& [service, port] : document_services()) {
    const auto filled = [&, name = service](const std::string& text) {
      return replaced(replaced(text, "%i", name), "%H", "host");
    };
    auto command = words(filled(values(unit, "ExecStart").at(0)));
    ASSERT_EQ(command.at(0), "/usr/bin/documents");
    command.erase(command.begin());
    ServiceStart start{.arguments = command,
                       .settings_file = deploy_text("systemd/documents.yaml")};
    for (const std::string& one : values(unit, "Environment")) {
      const auto equals = one.find('=');
      start.environment[one.substr(0, equals)] = filled(one.substr(equals + 1));
    }
    // The example in the comment at its head.
    const std::regex example("#   (DOCUMENTS_[A-Z_]+)=");
    for (std::sregex_iterator it(unit.begin(), unit.end(), example), end; it != end; ++it) {
      const bool broker = (*it)[1] == "DOCUMENTS_BROKER";
      start.environment[(*it)[1]] = broker ? "rabbitmqs://u:p@h/v" : "postgres://u:p@h/d";
    }
    EXPECT_EQ(start.environment.size(), 4U);
    const auto settings = settings_of(start);
    EXPECT_EQ(settings.service, service);
    EXPECT_EQ(settings.instance, service + "@host");
    EXPECT_EQ(port_of(settings), port);
    EXPECT_EQ(values(unit, "EnvironmentFile"), std::vector<std::string>{"-/etc/documents/%i.env"});
    const auto stop = std::stoi(values(unit, "TimeoutStopSec").at(0));
    EXPECT_GT(std::chrono::seconds(stop), 2 * settings.grace);
  }
}

TEST(SystemdUnits, the_target_wants_all_services) {
  std::string wanted;
  for (const auto& line : values(deploy_text("systemd/documents.target"), "Wants")) {
    wanted += line + " ";
  }
  EXPECT_EQ(words(wanted).size(), document_services().size());
  for (const auto& [service, port] : document_services()) {
    EXPECT_NE(wanted.find("documents@" + service + ".service "), std::string::npos) << service;
  }
}

// As the unit starts it, on files.
TEST(SystemdUnits, start_a_relay_that_works) {
  const TempDir directory("relay");
  const std::string outbox = "sqlite:" + (directory / "shop.db").string();
  std::ofstream(directory / "shop.db").flush();
  ASSERT_TRUE(
      run({.argv = {BATON_PROGRAM, "outbox", "install", "--database", outbox}}).status.success());
  const std::string unit = deploy_text("systemd/baton-relay@.service");
  auto command = words(values(unit, "ExecStart").at(0));
  ASSERT_EQ(command.at(0), "/usr/bin/baton");
  command[0] = BATON_PROGRAM;
  for (std::string& word : command) {
    word = replaced(replaced(std::move(word), "%i", "shop"), "%H", "host");
    if (word == "${OUTBOX}") word = outbox;
    if (word == "127.0.0.1:9464") word = "127.0.0.1:0";
  }
  for (const char* name : {"OUTBOX", "BATON_BROKER", "BATON_STORE", "PGPASSFILE"}) {
    EXPECT_NE(unit.find(std::string("#   ") + name + "="), std::string::npos) << name;
  }
  Process relay({.argv = command,
                 .env = {{"BATON_BROKER", "embedded:" + (directory / "broker.db").string()},
                         {"BATON_STORE", "sqlite:" + (directory / "locks.db").string()}}});
  ASSERT_TRUE(relay.wait_for_out("LANE_TAKEN")) << relay.out() << relay.err();
  relay.kill(SIGTERM);
  const auto ended = relay.wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(std::to_string(ended->code), values(unit, "SuccessExitStatus").at(0));
}

// What the unit starts for an instance, with a script in place of the COMMAND of its example.
ProcessOptions started(const std::string& unit, const std::string& instance,
                       const TempDir& directory, const std::string& script) {
  const std::string text = deploy_text("systemd/" + unit);
  std::vector<std::string> argv;
  for (std::string word : words(values(text, "ExecStart").at(0))) {
    word = replaced(replaced(std::move(word), "%i", instance), "%H", "host");
    if (word == "/usr/bin/baton") word = BATON_PROGRAM;
    if (word == "$OPTIONS") {
      const std::regex example("\n#   OPTIONS=([^\n]*)\n");
      std::smatch found;
      EXPECT_TRUE(std::regex_search(text, found, example)) << unit;
      for (std::string& option : words(found[1])) argv.push_back(std::move(option));
    } else if (word == "$COMMAND") {
      argv.insert(argv.end(), {"sh", "-c", script});
    } else {
      argv.push_back(std::move(word));
    }
  }
  return {.argv = argv, .env = {{"BATON_STORE", "sqlite:" + (directory / "locks.db").string()}}};
}

TEST(SystemdUnits, start_a_candidate_that_leads_and_stops_as_systemd_expects) {
  const TempDir directory("elect");
  Process candidate(started("baton-elect@.service", "publisher", directory,
                            "echo leads $BATON_TERM; exec sleep 600"));
  ASSERT_TRUE(candidate.wait_for_out("leads ")) << candidate.err();
  candidate.kill(SIGTERM);
  const auto ended = candidate.wait();
  ASSERT_TRUE(ended);
  const std::string unit = deploy_text("systemd/baton-elect@.service");
  EXPECT_EQ(std::to_string(ended->code), values(unit, "SuccessExitStatus").at(0));
}

TEST(SystemdUnits, a_run_that_another_machine_does_is_a_success_for_systemd) {
  const TempDir directory("run");
  const std::string unit = deploy_text("systemd/baton-run@.service");
  Process first(started("baton-run@.service", "report", directory, "echo works; read end"));
  ASSERT_TRUE(first.wait_for_out("works")) << first.err();
  const auto busy = run(started("baton-run@.service", "report", directory, "echo works"));
  EXPECT_EQ(busy.out, "");
  EXPECT_EQ(values(unit, "SuccessExitStatus"),
            std::vector<std::string>{std::to_string(busy.status.code)});
  ASSERT_TRUE(first.write("\n"));
  ASSERT_TRUE(first.wait());
  // The name stays taken, so a machine whose timer is late does not run it again.
  const auto late = run(started("baton-run@.service", "report", directory, "echo works"));
  EXPECT_EQ(late.out, "");
  EXPECT_EQ(late.status, busy.status);
}

// As the unit checks, starts, reloads and stops it.
TEST(SystemdUnits, start_a_cron_that_works) {
  const TempDir directory("cron");
  const std::string file = (directory / "cron.yaml").string();
  std::ofstream(file) << "jobs:\n  greet: {after-end: 1h, command: echo from $BATON_NODE}\n";
  const std::string unit = deploy_text("systemd/baton-cron.service");
  const auto command = [&](const std::string& key) {
    auto filled = words(values(unit, key).at(0));
    EXPECT_EQ(filled.at(0), "/usr/bin/baton");
    filled[0] = BATON_PROGRAM;
    for (std::string& word : filled) {
      word = replaced(std::move(word), "%H", "host");
      if (word == "/etc/baton/cron.yaml") word = file;
      if (word == "127.0.0.1:9465") word = "127.0.0.1:0";
    }
    return filled;
  };
  EXPECT_NE(unit.find("#   BATON_STORE="), std::string::npos);
  EXPECT_TRUE(run({.argv = command("ExecStartPre")}).status.success());
  Process cron({.argv = command("ExecStart"),
                .env = {{"BATON_STORE", "sqlite:" + (directory / "locks.db").string()}}});
  ASSERT_TRUE(cron.wait_for_out("\"message\":\"from host\"")) << cron.out() << cron.err();
  EXPECT_EQ(values(unit, "ExecReload"), std::vector<std::string>{"/bin/kill -HUP $MAINPID"});
  cron.kill(SIGHUP);
  ASSERT_TRUE(cron.wait_for_out("\"jobs\":\"1\"}")) << cron.out();
  cron.kill(SIGTERM);
  const auto ended = cron.wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(std::to_string(ended->code), values(unit, "SuccessExitStatus").at(0));
}

TEST(SystemdUnits, run_as_users_that_are_made) {
  for (const auto& [unit, users] : {std::pair{"documents@.service", "documents.sysusers.conf"},
                                    std::pair{"baton-cron.service", "baton-cron.sysusers.conf"},
                                    std::pair{"baton-elect@.service", "baton.sysusers.conf"},
                                    std::pair{"baton-relay@.service", "baton-relay.sysusers.conf"},
                                    std::pair{"baton-run@.service", "baton.sysusers.conf"}}) {
    const std::string user = values(deploy_text(std::string("systemd/") + unit), "User").at(0);
    EXPECT_NE(deploy_text(std::string("systemd/") + users).find("\nu " + user + " "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace baton::test
