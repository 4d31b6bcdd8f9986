#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <sqlite3.h>

#include "integration/cli/cli_support.h"
#include "support/privileges.h"

namespace baton::test {
namespace {

class Cli : public CliTest {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ / name) << content;
    return dir_ / name;
  }

  void sql(const std::string& name, const char* statement) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ / name).c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    EXPECT_EQ(sqlite3_exec(database, statement, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
};

// --- what is not there ---------------------------------------------------------------------------

TEST_F(Cli, a_set_that_is_not_there_is_named_with_the_store_that_was_asked) {
  const auto none = baton({"partition", "list"});
  EXPECT_EQ(none.out.rfind("no set of partitions in the region DEFAULT of sqlite:", 0), 0U)
      << none.out;
  EXPECT_EQ(baton({"partition", "list", "relay/shop"}).out.rfind("no set relay/shop in ", 0), 0U);
}

TEST_F(Cli, queues_that_are_not_there_are_named_with_the_broker_that_was_asked) {
  const auto topology = file("shop.yaml", "queues: {billing: {}}\n");
  const auto other = "embedded:" + (dir_ / "other.db").string();
  const Words list{"queue", "list", topology.string(), "--broker", other};
  const auto missing = baton(list);
  EXPECT_EQ(missing.status.code, 0);
  const std::string told = "all of the 2 queues of " + topology.string() + " are not at " + other;
  EXPECT_NE(missing.err.find(told), std::string::npos) << missing.err << missing.out;
  ASSERT_EQ(baton({"topology", "apply", topology.string(), "--broker", other}).status.code, 0);
  EXPECT_EQ(baton(list).err, "");
}

// --- bad input -----------------------------------------------------------------------------------

TEST_F(Cli, a_bad_name_is_refused) {
  for (const auto& [name, part] :
       std::map<std::string, std::string>{{"a\nb", "control character"},
                                          {"a/\x1b[31m", "control character"},
                                          {"a\x7f", "control character"},
                                          {"a%00", "control character"},
                                          {"a\xff", "UTF-8"},
                                          {"a/\xc3\x28", "UTF-8"},
                                          {"", "empty"},
                                          {"a//b", "empty"},
                                          {"/a", "empty"},
                                          {"a/", "empty"},
                                          {"a%zz", "hexadecimal"},
                                          {std::string(256, 'x'), " bytes, at most 255 are"},
                                          {"lock:exclusive:a", "lock:{mode}"},
                                          {"lock:strange:a:b", "mode"}}) {
    refuses({"run", name, "--", "true"}, 2, "bad_name", part);
    refuses({"lock", "show", name}, 2, "bad_name", part);
  }
  refuses({"run", "a", "--predicate", "p\x01", "--", "true"}, 2, "bad_name", "control character");
  refuses({"run", "a", "--region", "r\xff", "--", "true"}, 2, "bad_name", "UTF-8");
  refuses({"run", "a", "--region", "BATON", "--", "true"}, 2, "bad_name", "BATON");
  refuses({"lock", "find", "--subject", "a\xff"}, 2, "bad_name", "UTF-8");
  refuses({"lock", "find", "--resource", "a//b"}, 2, "bad_name", "empty");
}

TEST_F(Cli, a_bad_time_is_refused) {
  for (const auto* ttl : {"0s", "24h1ms", "25h"}) {
    refuses({"run", "a", "--ttl", ttl, "--", "true"}, 2, "bad_request", "--ttl");
  }
  for (const auto* ttl : {"-5s", "5", "1.5h", "soon", "", "99999999999999999999s"}) {
    refuses({"run", "a", "--ttl", ttl, "--", "true"}, 2, "bad_request", "not a duration");
  }
  refuses({"run", "a", "--wait", "24h1s", "--", "true"}, 2, "bad_request", "--wait");
  refuses({"run", "a", "--at-least-for", "25h", "--", "true"}, 2, "bad_request", "--at-least-for");
  refuses({"run", "a", "--grace", "x", "--", "true"}, 2, "bad_request", "--grace");
  refuses({"run", "a", "--ttl", "1ms", "--", "true"}, 2, "bad_request", "500 ms");
}

TEST_F(Cli, other_bad_words_are_refused) {
  refuses({"run", "a", "--mode", "exclusiv", "--", "true"}, 2, "bad_request", "'exclusive'");
  refuses({"run", "a", "--metadata", "novalue", "--", "true"}, 2, "bad_request", "key=value");
  refuses({"run", "a", "--metadata", "k=" + std::string(5000, 'x'), "--", "true"}, 2, "bad_request",
          "metadata");
  refuses({"run", "a"}, 2, "bad_request", "--");
  refuses({"lock", "break", "a", "--reason", ""}, 2, "bad_request", "reason");
  refuses({"lock", "find", "--limit", "0"}, 2, "bad_request", "--limit");
  refuses({"completion", "tcsh"}, 2, "bad_request", "tcsh");
  refuses({"policy", "check", "/no/such/file"}, 2, "bad_request", "No such file");
  refuses({"policy", "check", dir_.path().string()}, 2, "bad_request", "directory");
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  refuses({"policy", "check", pipe}, 2, "bad_request", "named pipe");
  refuses({"topology", "plan", pipe, "--broker", "embedded:" + (dir_ / "broker.db").string()}, 2,
          "bad_request", "named pipe");
}

TEST_F(Cli, an_unknown_word_is_refused_with_the_nearest_one) {
  refuses({"lcok"}, 2, "usage", "did you mean 'lock'?");
  refuses({"lock", "fnid"}, 2, "usage", "did you mean 'find'?");
  refuses({"run", "a", "--tll", "5s", "--", "true"}, 2, "usage", "did you mean '--ttl'?");
  refuses({"--store", "sqlite:x.db", "lock", "fnid"}, 2, "usage", "did you mean 'find'?");
  refuses({"lock"}, 2, "usage", "find list show break forget stats");
  refuses({}, 2, "usage", "run hold elect leader cron lock fence store policy");
  refuses({"lock", "break", "a"}, 2, "usage", "--reason");
  refuses({"run", "a", "b", "--", "true"}, 2, "usage", "not expected");
  refuses({"run", "a", "true"}, 2, "usage", "put -- before the command: baton run a -- true");
  refuses({"run", "a", "--ttl", "5s", "ls", "--color"}, 2, "usage",
          "put -- before the command: baton run a --ttl 5s -- ls");
  refuses({"elect", "a", "true"}, 2, "usage", "put -- before the command: baton elect a -- true");
  refuses({"run", "ls", "ls"}, 2, "usage", "put -- before the command: baton run ls -- ls");
  refuses({"lock", "show", "a", "b"}, 2, "usage", "not expected");
  refuses({"lcok", "--help"}, 2, "usage", "did you mean 'lock'?");
  refuses({"lock", "--help", "fnid"}, 2, "usage", "did you mean 'find'?");
  refuses({"list"}, 2, "usage",
          "did you mean 'baton lock list', 'baton job list', 'baton node list', 'baton partition "
          "list', 'baton outbox list', 'baton inbox list', 'baton dlq list', 'baton "
          "processor list' or 'baton queue list'?");
  refuses({"migrate"}, 2, "usage", "did you mean 'baton store migrate'?");
  refuses({"ls"}, 2, "usage", "did you mean 'baton lock list'?");
  refuses({"unlock", "a"}, 2, "usage", "did you mean 'baton lock break'?");
}

TEST_F(Cli, help_fits_a_terminal_of_80_columns) {
  for (const Help& help : all_help()) {
    std::istringstream lines(help.text);
    for (std::string line; std::getline(lines, line);) {
      const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;  // no later byte of a character
      });
      EXPECT_LE(characters, 80) << line;
    }
  }
}

TEST_F(Cli, a_command_is_refused_where_none_is_run) {
  refuses({"lock", "show", "a", "--", "true"}, 2, "usage", "'--'");
  refuses({"version", "--"}, 2, "usage", "'--'");
  refuses({"lock", "break", "a", "--reason", "r", "--", "--now"}, 2, "usage", "'--'");
}

TEST_F(Cli, a_password_in_a_misplaced_url_is_not_repeated) {
  const std::string url = "postgres://app:s3cr/et@db/locks?password=s3cr-et2";
  for (const Words& words : std::vector<Words>{{url},
                                               {"lock", url},
                                               {"lock", "list", url},
                                               {"lock", "show", "a", "b", url},
                                               {"lock", "find", "--limit", url},
                                               {"lock", "find", "--limit=" + url},
                                               {"lock", "find", "--store", url, "--limit", "x"},
                                               {"lock", "find", "--sotre", url},
                                               {"--sotre=" + url}}) {
    refuses(words, 2, "usage", "");
    const auto told = baton(words).err;
    EXPECT_EQ(told.find("s3cr"), std::string::npos) << told;
    EXPECT_EQ(told.find("et2"), std::string::npos) << told;
  }
  refuses({"lock", "find", url}, 2, "bad_name", "");
  EXPECT_EQ(baton({"lock", "find", url}).err.find("s3cr"), std::string::npos);
}

TEST_F(Cli, the_value_of_an_option_is_no_option) {
  EXPECT_EQ(baton({"lock", "break", "a", "--reason", "--json"}).out, "a was held by nobody\n");
}

// --- bad stores ----------------------------------------------------------------------------------

TEST_F(Cli, a_malformed_url_is_refused) {
  for (const auto* url : {"nonsense", "ftp://host/x", "sqlite:", "memory:x"}) {
    refuses({"lock", "find", "--store", url}, 2, "bad_url", ":");
  }
}

// Its locks would end with the command, and lock nobody out meanwhile.
TEST_F(Cli, a_store_in_memory_is_refused) {
  for (const Words& words : std::vector<Words>{{"run", "job", "--", "true"},
                                               {"elect", "job", "--", "true"},
                                               {"lock", "find"},
                                               {"leader", "show", "job"},
                                               {"policy", "show"},
                                               {"store", "status"}}) {
    Words with_store{"--store", "memory:"};
    with_store.insert(with_store.end(), words.begin(), words.end());
    refuses(with_store, 2, "bad_url", "memory: is for programs");
  }
}

TEST_F(Cli, a_file_in_a_directory_that_does_not_exist_is_refused) {
  const std::string directory = (dir_ / "typo").string();
  refuses({"run", "job", "--store", "sqlite:" + directory + "/locks.db", "--", "true"}, 1,
          "bad_store", "the directory " + directory + " does not exist");
  for (const auto* verb : {"status", "doctor", "migrate"}) {
    refuses({"store", verb, "--store", "sqlite:" + directory + "/locks.db"}, 1, "bad_store",
            "does not exist");
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(Cli, a_store_that_is_no_database_is_refused) {
  const auto path = file("corrupt.db", std::string(8192, 'x'));
  refuses({"lock", "find", "--store", "sqlite:" + path.string()}, 1, "bad_store", "corrupt.db");
  refuses({"lock", "find", "--store", "sqlite:" + dir_.path().string()}, 1, "bad_store", "");
}

TEST_F(Cli, a_store_of_a_newer_baton_is_refused) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  sql("locks.db", "UPDATE baton_meta SET schema_version = 99");
  refuses({"lock", "find"}, 1, "bad_store", "newer");
}

TEST_F(Cli, a_damaged_lock_is_refused) {
  ASSERT_EQ(baton({"run", "a", "--at-least-for", "1h", "--", "true"}).status.code, 0);
  sql("locks.db", "UPDATE baton_lock SET doc = '{' WHERE key = 'DEFAULT:a'");
  refuses({"lock", "show", "a"}, 1, "denied", "damaged");
}

TEST_F(Cli, a_damaged_lock_is_shown_by_name_and_forgotten_on_demand) {
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(baton({"run", name, "--at-least-for", "1h", "--", "true"}).status.code, 0);
  }
  sql("locks.db", "UPDATE baton_lock SET doc = '{' WHERE key = 'DEFAULT:a'");
  const auto found = baton({"lock", "find"});
  EXPECT_EQ(found.status.code, 0) << found.err;
  EXPECT_NE(found.out.find("damaged: "), std::string::npos) << found.out;
  EXPECT_NE(found.out.find("\nb "), std::string::npos) << found.out;
  EXPECT_NE(baton({"lock", "find", "--json"}).out.find("\"damage\":"), std::string::npos);
  EXPECT_NE(baton({"lock", "stats"}).err.find("damaged"), std::string::npos);
  const auto counted = baton({"lock", "stats", "--json"}).out;
  EXPECT_NE(counted.find(R"("damaged":["DEFAULT:a"])"), std::string::npos) << counted;
  EXPECT_NE(baton({"store", "doctor"}).out.find("'DEFAULT:a'"), std::string::npos);

  refuses({"lock", "forget", "a"}, 2, "bad_request", "--damaged");
  refuses({"lock", "forget", "b", "--damaged"}, 2, "bad_request", "not damaged");
  const auto forgotten = baton({"lock", "forget", "a", "--damaged"});
  EXPECT_EQ(forgotten.status.code, 0) << forgotten.err;
  EXPECT_NE(forgotten.err.find("was not told"), std::string::npos) << forgotten.err;
  EXPECT_EQ(baton({"run", "a", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "b", "--", "true"}).status.code, 75);
}

TEST_F(Cli, a_file_in_a_place_where_nobody_writes_is_refused) {
  refuses({"run", "job", "--store", "sqlite:/proc/locks.db", "--", "true"}, 1, "bad_store",
          "/proc");
}

TEST_F(Cli, a_file_that_this_user_may_not_write_or_read_is_refused) {
  if (const std::string refused = cannot_become_nobody(); !refused.empty()) {
    GTEST_SKIP() << "needs a user who is not root: " << refused;
  }
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  if (geteuid() == 0) {  // root may do anything; nobody may read our directory and run a copy
    ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
    std::filesystem::copy(BATON_PROGRAM, dir_ / "baton");
    program_ = (dir_ / "baton").string();
    user_ = "nobody";
  }
  ASSERT_EQ(chmod((dir_ / "locks.db").c_str(), 0444), 0);
  refuses({"run", "job", "--", "true"}, 1, "bad_store", "read-only");
  refuses({"lock", "find"}, 1, "bad_store", "read-only");
  ASSERT_EQ(chmod((dir_ / "locks.db").c_str(), 0000), 0);
  refuses({"run", "job", "--", "true"}, 1, "unauthorized", "locks.db");
}

// A disk of its own that is full, as nobody else sees it.
TEST_F(Cli, a_full_disk_is_told_and_nothing_runs) {
  std::filesystem::create_directory(dir_ / "small");
  env_["BATON_STORE"] = "sqlite:" + (dir_ / "small/locks.db").string();
  ProcessOptions full = options({});
  full.argv = {"unshare", "--mount"};
  if (geteuid() != 0) full.argv.insert(full.argv.end(), {"--user", "--map-root-user"});
  full.argv.insert(full.argv.end(), {"--", "sh", "-c", R"sh(
      mount -t tmpfs -o size=512k none small || exit 99
      fill() { cat /dev/zero > small/zeros 2> errors; }
      "$0" store migrate > told
      fill
      "$0" run job -- touch ran
      echo $?
      "$0" run job --json -- touch ran
      echo $?
      rm small/zeros
      "$0" run job -- echo works again
      "$0" run job --json -- sh -c 'cat /dev/zero > small/zeros 2> errors; exit 3'
      echo $?
      )sh",
                                     program_});
  const auto done = run(full);
  if (done.status.code == 99 || done.err.starts_with("unshare: ")) {
    GTEST_SKIP() << "needs a mount namespace of its own, with a disk in it: " << done.err;
  }
  EXPECT_EQ(done.out, "1\n1\nworks again\n3\n") << done.err;
  const std::string what = "no space for " + (dir_ / "small/locks.db").string() +
                           ": free some on its disk, then try again";
  EXPECT_EQ(done.err, "baton: " + what + "\n" + R"({"error":{"code":"unavailable","message":")" +
                          what + "\",\"retryable\":true}}\n" +
                          R"({"event":"warning","message":"could not release job ()" + what +
                          "); it ends by itself within 30s\"}\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
}

// --- settings ------------------------------------------------------------------------------------

TEST_F(Cli, the_store_is_found_in_the_order_that_is_documented) {
  const auto location = [&](Words extra) {
    Words words{"store", "status"};
    words.insert(words.end(), extra.begin(), extra.end());
    const auto status = baton(words);
    EXPECT_EQ(status.status.code, 0) << status.err;
    const std::string before = dir_.path().string() + "/";
    const auto begin = status.out.find(before) + before.size();
    return status.out.substr(begin, status.out.find('\n', begin) - begin);
  };
  unset_store();
  EXPECT_EQ(location({}), ".local/state/baton/baton.db");
  env_["XDG_STATE_HOME"] = (dir_ / "state").string();
  EXPECT_EQ(location({}), "state/baton/baton.db");
  std::filesystem::create_directories(dir_ / ".config/baton");
  file(".config/baton/baton.yaml", "store: sqlite:user.db\n");
  EXPECT_EQ(location({}), ".config/baton/user.db") << "not where baton happens to be started";
  file("baton.yaml", "store: sqlite:here.db\n");
  EXPECT_EQ(location({}), "here.db");
  env_["BATON_STORE"] = "sqlite:environment.db";
  EXPECT_EQ(location({}), "environment.db");
  EXPECT_EQ(location({"--store", "sqlite:given.db"}), "given.db");
}

TEST_F(Cli, a_store_that_was_given_empty_is_refused_instead_of_the_default_one_being_used) {
  env_["BATON_STORE"] = "";
  file("baton.yaml", "store: sqlite:here.db\n");
  refuses({"run", "job", "--", "true"}, 2, "bad_url",
          "BATON_STORE is set but empty; name a store in it, or unset it");
  EXPECT_EQ(baton({"lock", "find", "--store", store()}).status.code, 0) << "one was given";
  unset_store();
  for (const Words& words :
       {Words{"run", "job", "--store", "", "--", "true"}, Words{"--store", "", "lock", "find"}}) {
    refuses(words, 2, "usage", "--store: it is empty; name a store, or leave the option out");
  }
  EXPECT_EQ(baton({"run", "job", "--store=", "--", "true"}).status.code, 2);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "here.db"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / ".local"));
}

TEST_F(Cli, the_directory_of_the_default_store_is_for_its_user_alone) {
  const auto mode = [](const std::filesystem::path& path) {
    return std::filesystem::status(path).permissions();
  };
  const auto directory = dir_ / ".local/state/baton";
  unset_store();
  EXPECT_EQ(baton({"store", "status"}).status.code, 0);
  EXPECT_EQ(mode(directory), std::filesystem::perms::owner_all);
  std::filesystem::permissions(directory, std::filesystem::perms::all);
  EXPECT_EQ(baton({"store", "status"}).status.code, 0);
  EXPECT_EQ(mode(directory), std::filesystem::perms::owner_all) << "it was there before";
}

TEST_F(Cli, region_and_owner_come_from_the_file_too) {
  unset_store();
  file("baton.yaml", "store: " + store() + "\nregion: EU\nowner: me\n");
  auto process = hold("job", "echo ready; while :; do sleep 0.05; done");
  const auto found = baton({"lock", "find"});
  EXPECT_NE(found.out.find("job (EU)"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find(" me "), std::string::npos) << found.out;
}

TEST_F(Cli, settings_with_unknown_keys_are_refused) {
  unset_store();
  file("baton.yaml", "stroe: sqlite:x.db\n");
  refuses({"lock", "find"}, 2, "bad_request",
          "baton.yaml: line 1: unknown key 'stroe'; did you mean 'store'?");
}

TEST_F(Cli, a_file_here_has_no_say_if_the_store_was_given_otherwise) {
  file("baton.yaml", "store: sqlite:evil.db\nregion: EVIL\nowner: mallory\n");
  const auto show = [&](const Words& more) {
    Words words{"run", "job"};
    words.insert(words.end(), more.begin(), more.end());
    for (const auto* word : {"--", "sh", "-c", "echo $BATON_NAME"}) words.emplace_back(word);
    const auto ran = baton(words);
    EXPECT_EQ(ran.err, "");
    return ran.out;
  };
  EXPECT_EQ(show({}), "DEFAULT:job\n");
  unset_store();
  EXPECT_EQ(show({"--store", store()}), "DEFAULT:job\n");
  EXPECT_EQ(show({}), "EVIL:job\n") << "and if it was not, it has";
  // Not even one that is not safe is looked at.
  ASSERT_EQ(chmod((dir_ / "baton.yaml").c_str(), 0666), 0);
  EXPECT_EQ(show({"--store", store()}), "DEFAULT:job\n");
}

TEST_F(Cli, a_file_here_that_somebody_else_may_have_written_is_refused) {
  unset_store();
  const auto path = file("baton.yaml", "store: " + store() + "\n");
  EXPECT_EQ(baton({"lock", "find"}).status.code, 0);
  for (const mode_t mode : {0664U, 0646U, 0666U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    refuses({"lock", "find"}, 2, "bad_request",
            "cannot read baton.yaml: its group or others may write it; change that, say --store "
            "URL, or set BATON_STORE");
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  std::filesystem::rename(path, dir_ / "elsewhere.yaml");
  std::filesystem::create_symlink("elsewhere.yaml", path);
  refuses({"lock", "find"}, 2, "bad_request", "baton.yaml: it is a symbolic link");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  refuses({"lock", "find"}, 2, "bad_request", "baton.yaml: it is not a regular file");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  refuses({"lock", "find"}, 2, "bad_request", "baton.yaml: it is not a regular file");
}

TEST_F(Cli, a_file_here_of_another_user_is_refused_and_one_of_roots_is_not) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to make a file of another user's";
  unset_store();
  const auto path = file("baton.yaml", "store: sqlite:" + (dir_ / "open/locks.db").string() + "\n");
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  refuses({"lock", "find"}, 2, "bad_request", "baton.yaml: it belongs to another user (uid 65534)");
  ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  std::filesystem::create_directory(dir_ / "open");
  ASSERT_EQ(chown((dir_ / "open").c_str(), 65534, 65534), 0);
  std::filesystem::copy(BATON_PROGRAM, dir_ / "baton");
  program_ = (dir_ / "baton").string();
  user_ = "nobody";
  const auto found = baton({"lock", "find"});
  EXPECT_EQ(found.status.code, 0) << found.err;
}

// --- policy --------------------------------------------------------------------------------------

TEST_F(Cli, a_policy_is_checked_applied_and_shown) {
  const auto path = file("locks.yaml",
                         "subjects:\n  audit: {modes: [exclusive]}\n  job: {scope: predicate}\n"
                         "undeclared: deny\n")
                        .string();
  EXPECT_EQ(baton({"policy", "show"}).out.rfind("# no policy", 0), 0U);
  EXPECT_EQ(baton({"policy", "check", path}).out.rfind("good: 2 subjects", 0), 0U);
  const auto applied = baton({"policy", "apply", path});
  EXPECT_EQ(applied.status.code, 0) << applied.err;
  EXPECT_EQ(applied.out.rfind("version 2 is in force\nconflicts changed for: job\n", 0), 0U);
  EXPECT_EQ(baton({"policy", "apply", path, "--json"}).out,
            "{\"version\":2,\"unchanged\":true,\"drained\":[]}\n");
  const auto shown = baton({"policy", "show"});
  file("again.yaml", shown.out);
  EXPECT_NE(baton({"policy", "apply", (dir_ / "again.yaml").string()}).out.find("nothing to do"),
            std::string::npos);
  refuses({"run", "audit", "--mode", "shared", "--", "true"}, 1, "denied", "exclusive");
  refuses({"run", "typo", "--", "true"}, 1, "denied", "not declared");
  auto one = hold("job/1", "echo ready; while :; do sleep 0.05; done", {"--predicate", "reading"});
  EXPECT_EQ(baton({"run", "job/1", "--predicate", "writing", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "job/1", "--predicate", "reading", "--", "true"}).status.code, 75);
}

TEST_F(Cli, a_policy_that_changes_conflicts_waits_for_the_holders) {
  const auto path = file("locks.yaml", "subjects: {job: {scope: predicate}}").string();
  auto holder = hold("job", "echo ready; read line");
  const auto late = baton({"policy", "apply", path, "--timeout", "300ms"});
  EXPECT_EQ(late.status.code, 75);
  EXPECT_NE(late.err.find("The old policy stays in force"), std::string::npos) << late.err;
  EXPECT_EQ(baton({"run", "other", "--", "true"}).status.code, 0);
  auto apply = start({"policy", "apply", path});
  EXPECT_TRUE(apply->wait_for_err("waiting for 1 holder and 0 waiters of changed subjects"));
  refuses({"run", "other", "--", "true"}, 1, "denied", "again");
  holder->write("\n");
  ends(*holder, 0);
  ends(*apply, 0);
  EXPECT_EQ(baton({"run", "other", "--", "true"}).status.code, 0);
}

TEST_F(Cli, an_interrupted_apply_puts_the_old_policy_back) {
  const auto path = file("locks.yaml", "subjects: {job: {scope: predicate}}").string();
  auto holder = hold("job", "echo ready; while :; do sleep 0.05; done");
  auto apply = start({"policy", "apply", path});
  EXPECT_TRUE(apply->wait_for_err("waiting for 1 holder and 0 waiters of changed subjects"));
  apply->kill(SIGINT);
  ends(*apply, 1);
  EXPECT_EQ(baton({"run", "other", "--", "true"}).status.code, 0);
}

// --- fence ---------------------------------------------------------------------------------------

TEST_F(Cli, a_token_is_checked_against_the_fence_without_leaving_a_trace) {
  const std::string data = "sqlite:" + (dir_ / "data.db").string();
  refuses({"fence", "check", "job", "5", "--database", data}, 1, "bad_store", "data.db");
  sql("data.db", "CREATE TABLE t(x)");
  refuses({"fence", "check", "job", "5", "--database", data}, 1, "bad_store", "fence install");
  refuses({"fence", "rebase", "--database", data}, 1, "bad_store", "fence install");
  EXPECT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  for (const auto* token : {"9", "5"}) {
    const auto checked = baton({"fence", "check", "job", token, "--database", data});
    EXPECT_EQ(checked.status.code, 0) << checked.err;
  }
  sql("data.db", "INSERT INTO baton_fence (name, x_token) VALUES ('DEFAULT:job', 7)");
  EXPECT_EQ(baton({"fence", "check", "job", "6", "--database", data}).status.code, 77);
  EXPECT_EQ(
      baton({"fence", "check", "--key", "DEFAULT:job", "6", "--database", data, "--json"}).out,
      "{\"key\":\"DEFAULT:job\",\"token\":6,\"accepted\":false}\n");
  EXPECT_EQ(baton({"fence", "rebase", "--database", data, "--json"}).out, "{\"floor\":7}\n");
  const auto ran = baton({"run", "job", "--", "sh", "-c", "echo $BATON_TOKEN"});
  EXPECT_GT(std::stoi(ran.out), 7);
  refuses({"fence", "check", "job", "x", "--database", data}, 2, "bad_request", "token");
  refuses({"fence", "check", "job", "0", "--database", data}, 2, "bad_request", "token");
  refuses({"fence", "install", "--database", "oracle:x"}, 2, "bad_url", "--database");
}

TEST_F(Cli, a_command_can_show_its_whole_lease_to_a_fence) {
  const auto policy = file("locks.yaml", "subjects: {page: {parent: document}, document: {}}\n");
  ASSERT_EQ(baton({"policy", "apply", policy.string()}).status.code, 0);
  const auto ran = baton({"run", "page/7/1", "--", "sh", "-c", "printf %s \"$BATON_FENCE\""});
  EXPECT_EQ(ran.out.rfind(R"([{"name":"DEFAULT:page:7:1","mode":"X","token":")", 0), 0U) << ran.out;
  EXPECT_NE(ran.out.find(R"({"name":"DEFAULT:document:7","mode":"IX","token":")"), ran.out.npos);
  sql("data.db", "CREATE TABLE t(x)");
  const std::string data = "sqlite:" + (dir_ / "data.db").string();
  ASSERT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  const auto check = [&](const std::string& lease) {
    env_["BATON_FENCE"] = lease;
    return baton({"fence", "check", "--database", data}).status.code;
  };
  EXPECT_EQ(check(ran.out), 0);
  sql("data.db",
      "INSERT INTO baton_fence (name, s_token) VALUES ('DEFAULT:document:7', 1000000000)");
  EXPECT_EQ(check(ran.out), 77) << "somebody reads the whole document since";
  EXPECT_EQ(baton({"run", "page/7/1", "--", BATON_PROGRAM, "fence", "check", "--database", data})
                .status.code,
            77);
  env_["BATON_FENCE"] = "[]";
  refuses({"fence", "check", "--database", data}, 2, "bad_request", "names");
  env_["BATON_FENCE"] = "nonsense";
  refuses({"fence", "check", "--database", data}, 2, "bad_request", "BATON_FENCE");
  refuses({"fence", "check", "job", "--database", data}, 2, "bad_request", "TOKEN");
  env_.erase("BATON_FENCE");
  refuses({"fence", "check", "--database", data}, 2, "bad_request", "BATON_FENCE");
}

}  // namespace
}  // namespace baton::test
