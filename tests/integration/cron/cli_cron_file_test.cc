// The file of `baton cron`: what is wrong with it, that it is read again, and crontabs.

#include <pwd.h>
#include <unistd.h>

#include "integration/cron/cron_support.h"
#include "integration/docs/docs_page.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

std::string home_of(const char* name) {
  const passwd* user = getpwnam(name);
  return user == nullptr ? "no such user" : user->pw_dir;
}

constexpr const char* kJob = "jobs:\n  a:\n    every: 1s\n    command: 'true'\n    ";

TEST_F(CronTest, every_mistake_is_said_with_its_line) {
  for (const auto& [more, part] : {
           std::pair{"ttt: 3s", "line 5: unknown key 'ttt'; did you mean 'ttl'?"},
           {"retry_after: 3s", "line 5: unknown key 'retry_after'; did you mean 'retry-after'?"},
           {"timeout: 30", "line 5: timeout needs a unit"},
           {"timeout: soon", "line 5: timeout must be"},
           {"cron: 0 2 * * *", "needs one of every, after-end and cron, not several"},
           {"on-crash: maybe", "line 5: on-crash must be rerun or skip, not 'maybe'"},
           {"jitter: 2s", "jitter"},
           {"ttl: 1ms", "line 5: ttl 1ms is shorter"},
           {"directory: here", "line 5: directory must be a path that begins with /"},
           {"environment: {1X: y}", "line 5: '1X' is no name of a variable"},
           {"environment: {BATON_FIRE: '1'}", "line 5: BATON_FIRE is set by baton"},
           {"retries: many", "line 5: retries must be a number from 0 to 100"},
           {"keep-runs: 21", "line 5: keep-runs must be a number from 0 to 20"},
           {"enabled: perhaps", "line 5: enabled must be true or false"},
           {"command: 'false'", "line 5"},
       }) {
    const auto told = errors_of(std::string(kJob) + more + "\n");
    EXPECT_NE(told.find(part), std::string::npos) << more << "\n" << told;
  }
  for (const auto& [yaml, part] : {
           std::pair{"jobs:\n  a:\n    command: x\n", "line 2: job 'a' needs one of every"},
           {"jobs:\n  a:\n    every: 1s\n", "line 2: job 'a' has no command"},
           {"jobs:\n  a:\n    every: 10ms\n    command: x\n", "more often than every 100ms"},
           {"jobs:\n  a:\n    cron: 61 * * * *\n    command: x\n", "line 2: "},
           {"jobs:\n  a:\n    cron: * * * * *\n    command: x\n",
            "put the expression in quotes: cron: \"* * * * *\""},
           {"jobs:\n  a:\n    cron: 0 0 * * *\n    time-zone: Mars/One\n    command: x\n",
            "Mars/One"},
           {"jobs:\n  a:\n    cron: '@nightly'\n    command: x\n", "@daily, @midnight"},
           {"jobs:\n  a:\n    cron: 0 0 * * MON-FRY\n    command: x\n", "MON…SUN or 0 to 7"},
           {"jobs:\n  a:\n\tevery: 1s\n", "line 3: "},
           {"jobs:\n  a:\n\tevery: 1s\n", "; indent with spaces, not with tabs"},
           {"defaults:\n  every: 1s\njobs: {}\n", "line 2: every is of a job, not of defaults"},
           {"jbos: {}\n", "line 1: unknown key 'jbos'; did you mean 'jobs'?"},
           {"jobs: [a]\n", "jobs must be a map of jobs"},
           {"", "expected the key jobs"},
       }) {
    const auto told = errors_of(yaml);
    EXPECT_NE(told.find(part), std::string::npos) << yaml << "\n" << told;
  }
}

TEST_F(CronTest, a_file_has_limits) {
  std::string many = "jobs:\n";
  for (int i = 0; i < 1001; ++i) many += "  j" + std::to_string(i) + ": {every: 1s, command: x}\n";
  EXPECT_NE(errors_of(many).find("at most 1000"), std::string::npos);
  EXPECT_NE(errors_of(std::string(kJob) + "directory: /" + std::string(300'000, 'x') + "\n")
                .find("has more than 262144 bytes"),
            std::string::npos);
  EXPECT_NE(errors_of("jobs:\n  a:\n    every: 1s\n    command: " + std::string(70'000, 'x') + "\n")
                .find("longer than 64 KiB"),
            std::string::npos);
  EXPECT_NE(errors_of("jobs:\n  " + std::string(3000, 'n') + ": {every: 1s, command: x}\n")
                .find("line 2"),
            std::string::npos);
}

TEST_F(CronTest, a_file_that_others_may_write_runs_nothing) {
  write_jobs(std::string(kJob) + "ttl: 3s\n");
  std::filesystem::permissions(file(), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  for (const Words& words : {Words{"cron", file()}, Words{"cron", file(), "--check"}}) {
    const auto told = baton(words);
    EXPECT_EQ(told.status.code, 2);
    EXPECT_NE(told.err.find("its group or others may write it"), std::string::npos) << told.err;
    EXPECT_NE(told.err.find("chmod go-w " + file()), std::string::npos) << told.err;
  }
}

TEST_F(CronTest, a_file_that_takes_the_place_of_one_that_was_right_is_looked_at_itself) {
  write_jobs(std::string(kJob) + "ttl: 3s\n");
  const std::string other = (dir_ / "other.yaml").string();
  std::ofstream(other) << kJob << "ttl: 4s\n";
  std::filesystem::permissions(other, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  env_["LD_PRELOAD"] = SWAP_ON_OPEN;
  env_["BATON_TEST_SWAP_PATH"] = file();
  env_["BATON_TEST_SWAP_WITH"] = other;
  const auto told = baton({"cron", file(), "--check"});
  EXPECT_FALSE(std::filesystem::exists(other)) << "it has not taken its place";
  EXPECT_EQ(told.status.code, 2) << told.out;
  EXPECT_NE(told.err.find("its group or others may write it"), std::string::npos) << told.err;
}

TEST_F(CronTest, check_shows_when_each_job_is_due_next_and_what_this_machine_lacks) {
  write_jobs(
      "jobs:\n"
      "  nightly:\n"
      "    cron: 30 2 * * *\n"
      "    time-zone: Europe/Berlin\n"
      "    command: [no-such-program, --all]\n"
      "    directory: /no/such/directory\n"
      "  after: {after-end: 1m, command: 'true'}\n"
      "  off: {every: 1m, command: 'true', enabled: false}\n"
      "  there: {every: 1m, command: 'true', nodes: [vm, vm-2]}\n");
  const auto told = baton({"cron", file(), "--check"});
  EXPECT_EQ(told.status.code, 0) << told.err;
  for (const char* part : {"nightly", "30 2 * * * Europe/Berlin", ":30:00Z",
                           "no-such-program --all", "at once, then after each end", "disabled"}) {
    EXPECT_NE(told.out.find(part), std::string::npos) << part << "\n" << told.out;
  }
  EXPECT_NE(told.err.find("nightly: no-such-program: command not found on this machine"),
            std::string::npos)
      << told.err;
  EXPECT_NE(told.err.find("nightly: /no/such/directory: no such directory on this machine"),
            std::string::npos)
      << told.err;
  EXPECT_NE(told.err.find("there: not on this machine, which has no name (nodes: vm, vm-2)"),
            std::string::npos)
      << told.err;
  const auto named = baton({"cron", file(), "--check", "--node", "db"}).err;
  EXPECT_NE(named.find("there: not on this machine (node db; nodes: vm, vm-2)"), std::string::npos)
      << named;
  EXPECT_EQ(baton({"cron", file(), "--check", "--node", "vm"}).err.find("there:"),
            std::string::npos);
  const auto json = baton({"cron", file(), "--check", "--json"}).out;
  EXPECT_EQ(json.find("{\"jobs\":[{\"name\":\"nightly\",\"line\":2,"), 0U) << json;
  write_jobs("jobs:\n");
  const auto none = baton({"cron", file(), "--check"});
  EXPECT_EQ(none.status.code, 0);
  EXPECT_NE(none.err.find("the file has no jobs"), std::string::npos) << none.err;
}

TEST_F(CronTest, the_file_of_the_documentation_is_understood) {
  write_jobs(blocks(page("cron.md"), "yaml").at(0));
  const auto told = baton({"cron", file(), "--check"});
  EXPECT_EQ(told.status.code, 0) << told.err;
  EXPECT_NE(told.out.find("nightly-report"), std::string::npos) << told.out;
}

TEST_F(CronTest, a_file_that_changes_is_read_again_and_what_runs_goes_on) {
  const auto yaml = [&](const std::string& text, const std::string& more) {
    return "jobs:\n"
           "  long:\n"
           "    after-end: 1h\n"
           "    report-after: 50ms\n"
           "    command: echo begun; while test ! -e " +
           (dir_ / "end").string() + "; do sleep 0.02; done; echo " + text + "\n" + more;
  };
  write_jobs(yaml("first", "  going: {after-end: 100ms, command: echo going}\n"));
  const auto running = node("node-a");
  ASSERT_TRUE(logs(*running, {"\"message\":\"begun\""}));
  ASSERT_TRUE(logs(*running, {"\"message\":\"going\""}));
  // Another command for the one that runs, one goes, one comes.
  write_jobs(yaml("second", "  coming: {after-end: 100ms, command: echo coming}\n"));
  ASSERT_TRUE(logs(*running, {"FILE_LOADED", "\"added\":\"coming\"", "\"changed\":\"long\"",
                              "\"removed\":\"going\""}))
      << running->out();
  ASSERT_TRUE(logs(*running, {"\"message\":\"coming\"", "\"fire\":\"3\""}));
  const auto gone = logged(*running, {"FIRE_STARTED", "\"job\":\"going\""}).size();
  EXPECT_TRUE(poll_until(
      [&] {
        return baton({"job", "list"}).out.find("gone") != std::string::npos;
      },
      patience));
  EXPECT_EQ(logged(*running, {"FIRE_STARTED", "\"job\":\"going\""}).size(), gone);
  // The old command goes on to its end.
  EXPECT_EQ(logged(*running, {"FIRE_STARTED", "\"job\":\"long\""}).size(), 1U);
  EXPECT_TRUE(logs(*running, {"WARN", "FIRE_STILL_RUNNING", "\"job\":\"long\""}));
  EXPECT_TRUE(logged(*running, {"Still running"}).empty()) << running->out();
  std::ofstream(dir_ / "end").flush();
  EXPECT_TRUE(logs(*running, {"\"message\":\"first\"", "\"job\":\"long\""}));
  ASSERT_EQ(baton({"job", "run", "long", "--wait", "30s"}).status.code, 0);
  EXPECT_TRUE(logs(*running, {"\"message\":\"second\"", "\"job\":\"long\""})) << running->out();
}

TEST_F(CronTest, a_broken_file_changes_nothing_and_is_reported) {
  write_jobs("jobs:\n  steady: {after-end: 100ms, command: echo going}\n");
  const auto running = node("node-a");
  ASSERT_TRUE(logs(*running, {"\"message\":\"going\""}));
  write_jobs("jobs:\n  steady: {after-end: 100ms, comand: echo going}\n");
  ASSERT_TRUE(logs(*running, {"FILE_REFUSED", "line 2: unknown key 'comand'"})) << running->out();
  const auto before = logged(*running, {"\"message\":\"going\""}).size();
  EXPECT_TRUE(poll_until(
      [&] { return logged(*running, {"\"message\":\"going\""}).size() > before + 1; }, patience));
  std::filesystem::remove(file());
  running->kill(SIGHUP);
  EXPECT_TRUE(logs(*running, {"FILE_REFUSED", "cannot read"})) << running->out();
  EXPECT_TRUE(running->running());
}

TEST_F(CronTest, sighup_reads_the_file_although_nothing_has_changed) {
  write_jobs("jobs:\n  steady: {every: 1h, command: 'true'}\n");
  const auto running = node("node-a");
  running->kill(SIGHUP);
  EXPECT_TRUE(poll_until([&] { return logged(*running, {"FILE_LOADED"}).size() == 2; }, patience));
  EXPECT_TRUE(running->running());
}

TEST_F(CronTest, the_log_warns_of_a_default_store_and_of_jobs_that_are_not_on_this_machine) {
  write_jobs("jobs:\n  steady: {every: 1h, command: 'true', nodes: [vm]}\n");
  {
    const auto running = node("node-a");
    EXPECT_EQ(logged(*running, {"INFO", "JOB_NOT_HERE", "(node node-a; nodes: vm)"}).size(), 1U);
    EXPECT_EQ(logged(*running, {"CRON_STARTED", "\"store\":\"" + store()}).size(), 1U);
    EXPECT_TRUE(logged(*running, {"DEFAULT_STORE"}).empty()) << running->out();
  }
  unset_store();
  for (int starts = 0; starts < 2; ++starts) {
    const auto running = start({"cron", file()});
    ASSERT_TRUE(running->wait_for_out("CRON_STARTED")) << running->err();
    EXPECT_EQ(logged(*running, {"WARN", "JOB_NOT_HERE", "--node"}).size(), 1U) << running->out();
    EXPECT_EQ(logged(*running, {"WARN", "DEFAULT_STORE", "set BATON_STORE"}).size(), 1U)
        << running->out();
  }
}

TEST_F(CronTest, a_crontab_becomes_a_file_that_does_the_same) {
  std::ofstream(dir_ / "crontab") << "# Reports of the shop\n"
                                     "SHELL=/bin/bash\n"
                                     "PATH=/usr/local/bin:/usr/bin:/bin\n"
                                     "MAILTO=team@shop.example\n"
                                     "CRON_TZ=Europe/Berlin\n"
                                     "\n"
                                     "# every night\n"
                                     "30 2 * * MON-FRI  /srv/bin/report.sh --to \"$HOME\" 2>&1\n"
                                     "*/5 * * * * mail -s 100\\% done%first line%second line\n"
                                     "@daily /srv/bin/report.sh --day\n"
                                     "@reboot /srv/bin/once\n"
                                     "61 * * * * /srv/bin/never\n";
  const auto made = baton(
      {"cron", "--import", (dir_ / "crontab").string(), "--output", (dir_ / "made.yaml").string()});
  ASSERT_EQ(made.status.code, 0) << made.err;
  for (const char* part : {"line 4: MAILTO", "line 11: left out: @reboot", "line 12: left out"}) {
    EXPECT_NE(made.err.find(part), std::string::npos) << part << "\n" << made.err;
  }
  std::ostringstream yaml;
  yaml << std::ifstream(dir_ / "made.yaml").rdbuf();
  const std::string text = yaml.str();
  for (const char* part :
       {"time-zone: Europe/Berlin", "# Reports of the shop", "# every night", "  report:\n",
        "  report-2:\n", "cron: \"30 2 * * MON-FRI\"", "cron: \"@daily\"", "- \"/bin/bash\"",
        "mail -s 100% done", "first line\n", "second line\n", "on-crash: skip", "misfire: skip",
        "PATH: \"/usr/local/bin:/usr/bin:/bin\""}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(baton({"cron", (dir_ / "made.yaml").string(), "--check"}).status.code, 0);
  // A file that is there is not written over.
  const auto again = baton(
      {"cron", "--import", (dir_ / "crontab").string(), "--output", (dir_ / "made.yaml").string()});
  EXPECT_EQ(again.status.code, 2);
  EXPECT_NE(again.err.find("name a new file"), std::string::npos) << again.err;
}

TEST_F(CronTest, of_a_crontab_with_users_the_entries_of_one_are_taken) {
  std::ofstream(dir_ / "crontab") << "17 * * * * root cd / && run-parts --report /etc/cron.hourly\n"
                                     "0 1 * * * www-data /srv/www/clean\n";
  const auto made = baton({"cron", "--import", (dir_ / "crontab").string(), "--user", "root"});
  ASSERT_EQ(made.status.code, 0) << made.err;
  EXPECT_NE(made.out.find("cd / && run-parts --report /etc/cron.hourly"), std::string::npos);
  EXPECT_EQ(made.out.find("www"), std::string::npos) << made.out;
  EXPECT_NE(made.err.find("line 2: left out: it runs as www-data"), std::string::npos) << made.err;
  EXPECT_NE(made.out.find("directory: \"" + home_of("root") + "\""), std::string::npos) << made.out;
  const auto other = baton({"cron", "--import", (dir_ / "crontab").string(), "--user", "www-data"});
  EXPECT_NE(other.out.find("directory: \"" + home_of("www-data") + "\""), std::string::npos)
      << other.out << other.err;
}

TEST_F(CronTest, a_crontab_with_users_is_refused_without_one) {
  std::ofstream(dir_ / "crontab") << "17 * * * * root cd / && run-parts --report /etc/cron.hourly\n"
                                     "0 1 * * * www-data /srv/www/clean\n";
  for (const std::string& crontab :
       {(dir_ / "crontab").string(), std::string("/etc/crontab"), std::string("/etc/cron.d/any")}) {
    const auto made = baton({"cron", "--import", crontab});
    EXPECT_EQ(made.status.code, 2) << made.out;
    EXPECT_NE(made.err.find("--user NAME"), std::string::npos) << made.err;
  }
  // One command that is no user, and it is no such crontab.
  std::ofstream(dir_ / "crontab", std::ios::app) << "0 2 * * * /srv/bin/report\n";
  EXPECT_EQ(baton({"cron", "--import", (dir_ / "crontab").string()}).status.code, 0);
}

TEST_F(CronTest, imported_commands_start_in_the_home_of_the_owner_of_the_crontab) {
  std::ofstream(dir_ / "crontab") << "0 2 * * * ./report\n";
  const passwd* owner = geteuid() == 0 ? getpwnam("www-data") : getpwuid(geteuid());
  ASSERT_NE(owner, nullptr);
  const std::string home = owner->pw_dir;
  ASSERT_EQ(chown((dir_ / "crontab").c_str(), owner->pw_uid, owner->pw_gid), 0);
  const auto made = baton({"cron", "--import", (dir_ / "crontab").string()});
  EXPECT_NE(made.out.find("directory: \"" + home + "\""), std::string::npos) << made.out;
}

TEST_F(CronTest, an_imported_command_reads_what_stands_behind_its_percent_sign) {
  std::ofstream(dir_ / "crontab") << "@yearly cat%one%two 100\\%\n";
  const auto made = baton({"cron", "--import", (dir_ / "crontab").string(), "--output", file()});
  ASSERT_EQ(made.status.code, 0) << made.err;
  const auto running = node("node-a");
  ASSERT_TRUE(poll_until(
      [&] {
        return baton({"job", "run", "cat", "--wait", "30s"}).status.code == 0;
      },
      patience));
  EXPECT_TRUE(logs(*running, {"\"message\":\"one\"", "\"job\":\"cat\""}));
  EXPECT_TRUE(logs(*running, {"\"message\":\"two 100%\"", "\"job\":\"cat\""})) << running->out();
}

}  // namespace
}  // namespace baton::test
