// Opening: which URLs, which files, and what an operator is told about the others.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "integration/sqlite/sqlite_support.h"
#include "store/sqlite/location.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;
using store::sqlite::network_filesystem;
using store::sqlite::path_of;
using SqliteFileTest = SqliteTest;

Error refusal(const std::string& path) {
  auto opened = store::open_sqlite_store_with({.path = path}, soon());
  return opened ? Error{.message = "opened"} : opened.error();
}

bool is_one_line(const std::string& message) {
  return !message.empty() && message.find('\n') == std::string::npos;
}

mode_t mode_of(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

TEST_F(SqliteFileTest, urls_name_files) {
  EXPECT_EQ(path_of("sqlite:/var/lib/locks.db").value(), "/var/lib/locks.db");
  EXPECT_EQ(path_of("sqlite:///var/lib/locks.db").value(), "/var/lib/locks.db");
  EXPECT_EQ(path_of("sqlite:locks.db").value(), (fs::current_path() / "locks.db").string());
  EXPECT_EQ(path_of("sqlite:./a/../locks.db").value(), (fs::current_path() / "locks.db").string());
  EXPECT_FALSE(path_of("sqlite:.."));
  EXPECT_FALSE(path_of("sqlite:a/."));
}

TEST_F(SqliteFileTest, a_path_means_what_the_file_system_says_and_not_its_text) {
  fs::create_directories(directory_ / "elsewhere/below");
  fs::create_symlink(directory_ / "elsewhere/below", directory_ / "link");
  const std::string place = fs::canonical(directory_ / "elsewhere").string();
  EXPECT_EQ(path_of("sqlite:" + (directory_ / "link/../locks.db").string()).value(),
            place + "/locks.db");
  EXPECT_EQ(path_of("sqlite:" + (directory_ / "link/locks.db").string()).value(),
            place + "/below/locks.db");
}

TEST_F(SqliteFileTest, other_urls_are_refused_with_a_hint) {
  for (const char* url : {"sqlite:", "sqlite:///", "sqlite://host/locks.db", "sqlite:locks.db?a=b",
                          "sqlite:locks.db?baton_x=1", "sqlite::memory:", "postgres://x", "",
                          "sqlite:a\nb", "sqlite:dir/"}) {
    const auto path = path_of(url);
    ASSERT_FALSE(path) << url;
    EXPECT_EQ(path.error().code, Code::bad_url) << url;
    EXPECT_TRUE(is_one_line(path.error().message)) << url;
  }
  EXPECT_NE(path_of("sqlite::memory:").error().message.find("memory:"), std::string::npos);
}

TEST_F(SqliteFileTest, a_new_file_is_private_whatever_the_umask) {
  const fs::path path = directory_ / "private.db";
  const mode_t old = ::umask(0);
  auto store = open_sqlite_store("sqlite:" + path.string(), soon());
  ::umask(old);
  ASSERT_TRUE(store) << store.error().message;
  Ear ear;
  const auto watch = (*store)->watch("a", ear);
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(mode_of(path.string() + "-wal"), 0600U);
  EXPECT_EQ(mode_of(path.string() + "-wake"), 0700U);
}

TEST_F(SqliteFileTest, a_directory_that_does_not_exist_is_named_and_not_made) {
  const Error error = refusal(directory_ / "typo" / "locks.db");
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_NE(
      error.message.find("the directory " + (directory_ / "typo").string() + " does not exist"),
      std::string::npos)
      << error.message;
  EXPECT_FALSE(fs::exists(directory_ / "typo"));
}

TEST_F(SqliteFileTest, network_filesystems_are_refused) {
  for (const std::uint64_t type : {0x6969U, 0xFF534D42U, 0xFE534D42U, 0x65735546U}) {
    const auto opened = store::open_sqlite_store_with({.path = path_, .filesystem = type}, soon());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::bad_store);
    EXPECT_NE(opened.error().message.find("local disk"), std::string::npos);
    EXPECT_FALSE(fs::exists(path_)) << "nothing is left behind";
  }
  EXPECT_EQ(network_filesystem(0x6969), "NFS");
  EXPECT_EQ(network_filesystem(0x19830326), "BeeGFS");
  EXPECT_EQ(network_filesystem(0x20030528), "OrangeFS");
  EXPECT_FALSE(network_filesystem(0xEF53)) << "ext4";
  EXPECT_FALSE(network_filesystem(0x01021994)) << "tmpfs";
  EXPECT_FALSE(network_filesystem(0x794c7630)) << "overlayfs";
}

TEST_F(SqliteFileTest, a_file_that_is_no_database_is_refused_and_left_alone) {
  std::ofstream(path_) << std::string(5'000, 'x');
  const Error error = refusal(path_);
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_NE(error.message.find("not an SQLite database"), std::string::npos) << error.message;
  EXPECT_EQ(fs::file_size(path_), 5'000U);
}

TEST_F(SqliteFileTest, a_damaged_database_is_refused) {
  { ask(*open(), acquire(kKey)); }
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << std::string(static_cast<std::size_t>(fs::file_size(path_)) - 100, '\xA5');
  }
  const Error error = refusal(path_);
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_NE(error.message.find("damaged"), std::string::npos) << error.message;
  EXPECT_TRUE(is_one_line(error.message));
}

TEST_F(SqliteFileTest, a_directory_is_no_store) {
  const Error error = refusal(directory_.path());
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(is_one_line(error.message)) << error.message;
}

TEST_F(SqliteFileTest, what_another_user_put_in_the_place_of_the_file_is_refused) {
  const fs::path victim = directory_ / "victim";
  std::ofstream(victim).put('\n');
  fs::resize_file(victim, 0);
  ASSERT_EQ(::symlink(victim.c_str(), path_.c_str()), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  ASSERT_EQ(::lchown(path_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(refusal(path_).code, Code::bad_store);
  EXPECT_EQ(fs::file_size(victim), 0U) << "an empty file is a valid database";
  fs::remove(path_);
  ASSERT_EQ(::symlink(victim.c_str(), path_.c_str()), 0);
  EXPECT_TRUE(store::open_sqlite_store_with({.path = path_}, soon())) << "a link of our own";
}

TEST_F(SqliteFileTest, processes_that_name_the_file_by_a_link_wake_those_that_name_it_itself) {
  const fs::path link = directory_ / "link.db";
  auto store = open();
  fs::create_symlink(path_, link);
  auto linked = open_sqlite_store("sqlite:" + link.string(), soon());
  ASSERT_TRUE(linked) << linked.error().message;
  Ear ear;
  const auto watch = (*linked)->watch("a", ear);
  EXPECT_TRUE(fs::exists(path_ + "-wake"));
  EXPECT_FALSE(fs::exists(link.string() + "-wake"));
}

TEST_F(SqliteFileTest, a_file_with_another_hard_link_is_refused_by_each_of_its_names) {
  { ask(*open(), acquire(kKey)); }
  const fs::path other = directory_ / "other.db";
  fs::create_hard_link(path_, other);
  for (const std::string& name : {std::string(path_), other.string()}) {
    const Error error = refusal(name);
    EXPECT_EQ(error.code, Code::bad_store);
    EXPECT_NE(error.message.find("hard links"), std::string::npos) << error.message;
    EXPECT_TRUE(is_one_line(error.message)) << error.message;
  }
  fs::remove(other);
  EXPECT_TRUE(store::open_sqlite_store_with({.path = path_}, soon()));
}

TEST_F(SqliteFileTest, a_fifo_is_no_store) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Error error = refusal(path_);
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(is_one_line(error.message)) << error.message;
}

TEST_F(SqliteFileTest, a_newer_schema_is_refused_also_while_open) {
  auto store = open();
  Outsider(path_).run("UPDATE baton_meta SET schema_version = 2");
  const Request request = acquire(kKey);
  const auto replies = store->apply({&request, 1}, soon());
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::bad_store);
  const Error error = refusal(path_);
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_NE(error.message.find("newer program"), std::string::npos) << error.message;
}

TEST_F(SqliteFileTest, the_users_own_database_may_hold_the_locks) {
  Outsider outsider(path_);
  outsider.run("CREATE TABLE lock(a); INSERT INTO lock VALUES (1)");
  auto store = open();
  EXPECT_EQ(ask(*store, acquire(kKey)).outcome, Outcome::granted);
  EXPECT_EQ(outsider.run("SELECT a FROM lock"), "1");
}

std::string detail(const StoreStatus& status, const std::string& name) {
  const auto it = std::find_if(status.details.begin(), status.details.end(),
                               [&](const auto& line) { return line.first == name; });
  return it == status.details.end() ? "(none)" : it->second;
}

TEST_F(SqliteFileTest, status_works_before_there_is_anything) {
  auto admin = open_sqlite_admin("sqlite:" + path_, soon()).value();
  const StoreStatus status = admin->status(soon()).value();
  EXPECT_EQ(status.kind, "sqlite");
  EXPECT_EQ(status.schema_version, 0);
  EXPECT_EQ(status.schema_expected, 1);
  EXPECT_FALSE(fs::exists(path_)) << "looking creates nothing";
  EXPECT_EQ(admin->migrate(soon()).value(), (std::pair{0, 1}));
  EXPECT_EQ(admin->migrate(soon()).value(), (std::pair{1, 1}));
  EXPECT_EQ(admin->status(soon()).value().schema_version, 1);
}

TEST_F(SqliteFileTest, status_counts_what_is_there) {
  auto store = open_sqlite_store("sqlite:" + path_, soon()).value();
  ask(*store, acquire(kKey));
  ask(*store, acquire(kKey, Millis(5'000)));
  ask(*store, acquire("DEFAULT:other"));
  auto admin = open_sqlite_admin("sqlite:" + path_, soon()).value();
  const StoreStatus status = admin->status(soon()).value();
  EXPECT_EQ(detail(status, "journal mode"), "wal");
  EXPECT_EQ(detail(status, "names"), "2");
  EXPECT_EQ(detail(status, "held"), "2");
  EXPECT_EQ(detail(status, "waiters"), "1");
  EXPECT_EQ(detail(status, "boot id").size(), 36U);
  Outsider(path_).run("UPDATE baton_meta SET schema_version = 9");
  EXPECT_EQ(admin->status(soon()).value().schema_version, 9) << "a newer one can be looked at";
  EXPECT_EQ(admin->migrate(soon()).error().code, Code::bad_store);
}

TEST_F(SqliteFileTest, raised_tokens_are_above_the_floor_and_never_lowered) {
  auto store = open();
  auto admin = open_sqlite_admin("sqlite:" + path_, soon()).value();
  admin->raise_tokens(5'000, soon()).value();
  EXPECT_EQ(ask(*store, acquire(kKey)).tokens.at(0), 5'001U);
  admin->raise_tokens(3, soon()).value();
  EXPECT_EQ(ask(*store, acquire("DEFAULT:other")).tokens.at(0), 5'002U);
  EXPECT_EQ(admin->raise_tokens(~Token{0}, soon()).error().code, Code::bad_request);
}

}  // namespace
}  // namespace baton::test
