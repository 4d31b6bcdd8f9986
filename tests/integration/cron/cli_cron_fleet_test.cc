// Three machines that run one file of `baton cron`. $BATON_CRON_STORE says on which store.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include <sqlite3.h>

#include "baton/fence.h"
#include "integration/cron/cron_support.h"
#include "support/postgres_database.h"
#include "support/seed.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

// By how much the wall clock of a process is off.
class WallOffset {
 public:
  explicit WallOffset(std::filesystem::path path) : path_(std::move(path)) {
    std::ofstream(path_) << std::string(8, '\0');
    const int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    shared_ = static_cast<std::atomic<std::int64_t>*>(
        mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
  }
  ~WallOffset() { munmap(shared_, 8); }
  WallOffset(const WallOffset&) = delete;
  WallOffset& operator=(const WallOffset&) = delete;
  void set(std::chrono::nanoseconds offset) { *shared_ = offset.count(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
  std::atomic<std::int64_t>* shared_;
};

class Fleet : public CronTest {
 protected:
  void SetUp() override {
    const char* kind = std::getenv("BATON_CRON_STORE");
    ASSERT_NE(kind, nullptr) << "BATON_CRON_STORE is not set";
    if (kind == "postgres"s) {
      database_.emplace();
      env_["BATON_STORE"] = database_->url();
      ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
    }
    ASSERT_EQ(sqlite3_open((dir_ / "effects.db").c_str(), &effects_), SQLITE_OK);
    sqlite3_busy_timeout(effects_, 60'000);
    install_fence(effects_).value();
    ask("PRAGMA journal_mode=WAL");
    ask("CREATE TABLE starts (job TEXT, fire INTEGER, attempt INTEGER)");
    ask("CREATE TABLE together (job TEXT, fire INTEGER, attempt INTEGER)");
    ask("CREATE TABLE effects (job TEXT, fire INTEGER, attempt INTEGER, PRIMARY KEY (job, fire))");
    std::filesystem::create_directory(dir_ / "working");
  }
  void TearDown() override { sqlite3_close(effects_); }

  std::int64_t ask(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(effects_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(effects_);
    const std::int64_t value =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return value;
  }
  std::int64_t effects() { return ask("SELECT count(*) FROM effects"); }

  void write_fleet_jobs(int jobs, const std::string& period) const {
    std::string yaml = "defaults:\n  ttl: 2s\n  grace: 100ms\njobs:\n";
    for (int i = 0; i < jobs; ++i) {
      const bool skip = i % 4 == 3;
      yaml += "  " + std::string(skip ? "skip-" : "rerun-") + std::to_string(i) + ":\n    " +
              (i % 3 == 2 ? "after-end: " : "every: ") + period + "\n    command: [" + CRON_EFFECT +
              ", " + (dir_ / "effects.db").string() + ", " + (dir_ / "working").string() + ", '" +
              std::to_string(i * 7 % 40) + "']\n" + (skip ? "    on-crash: skip\n" : "");
    }
    write_jobs(yaml);
  }

  void start_node(std::size_t index) {
    const std::string id = "node-" + std::to_string(index);
    if (offsets_.size() <= index) {
      offsets_.push_back(std::make_unique<WallOffset>(dir_ / ("offset-" + id)));
      nodes_.emplace_back();
    }
    auto made = options({"cron", file(), "--node", id, "--workers", "32"});
    made.env["LD_PRELOAD"] = WALL_OFFSET;
    made.env["BATON_TEST_WALL_OFFSET"] = offsets_[index]->path();
    nodes_[index] = std::make_unique<Process>(std::move(made));
  }

  std::optional<Database> database_;
  sqlite3* effects_ = nullptr;
  std::vector<std::unique_ptr<WallOffset>> offsets_;
  std::vector<std::unique_ptr<Process>> nodes_;
};

TEST_F(Fleet, each_fire_has_its_effect_once_although_machines_die_and_clocks_are_set) {
  constexpr std::int64_t kFires = 500;
  std::mt19937_64 random(seed_or(1));
  write_fleet_jobs(16, "250ms");
  for (std::size_t i = 0; i < 3; ++i) start_node(i);
  for (std::int64_t next = 60; effects() < kFires; next += 60) {
    ASSERT_TRUE(poll_until([&] { return effects() >= std::min(next, kFires); }, 2 * patience, 10ms))
        << nodes_[0]->out();
    const std::size_t which = random() % 3;
    if (random() % 2 == 0) {
      nodes_[which]->kill(SIGKILL);
      ASSERT_TRUE(nodes_[which]->wait());
      start_node(which);
    } else {
      offsets_[which]->set(std::chrono::milliseconds(static_cast<int>(random() % 4000) - 2000));
    }
  }
  for (const auto& node : nodes_) node->kill(SIGTERM);
  for (const auto& node : nodes_) {
    const auto status = node->wait();
    ASSERT_TRUE(status);
    EXPECT_EQ(status->code, 128 + SIGTERM) << node->err();
  }
  EXPECT_EQ(ask("SELECT count(*) FROM together"), 0) << "two worked at once";
  // None lost: of a job that runs again after a crash, each fire up to the last has its effect.
  // Those that were under way at the end may be left.
  EXPECT_EQ(ask("SELECT count(*) FROM (SELECT job, count(*) AS n, max(fire) AS last FROM effects "
                "WHERE job LIKE 'rerun-%' GROUP BY job) WHERE n <> last"),
            0);
  // None twice: with on-crash: skip a fire is started at most once.
  EXPECT_EQ(ask("SELECT count(*) FROM (SELECT 1 FROM starts WHERE job LIKE 'skip-%' "
                "GROUP BY job, fire HAVING count(*) > 1)"),
            0);
  // A fire is started again only with a higher attempt.
  EXPECT_EQ(ask("SELECT count(*) FROM (SELECT 1 FROM starts GROUP BY job, fire, attempt "
                "HAVING count(*) > 1)"),
            0);
  EXPECT_EQ(ask("SELECT count(DISTINCT job) FROM effects"), 16);
}

// Else the test above would show less than it says.
TEST_F(Fleet, the_clock_of_a_machine_is_set_by_this_test) {
  write_jobs("jobs:\n  a: {every: 1h, command: 'true'}\n");
  WallOffset offset(dir_ / "offset");
  offset.set(std::chrono::hours(24 * 366 * 50));
  auto made = options({"cron", file(), "--check"});
  made.env["LD_PRELOAD"] = WALL_OFFSET;
  made.env["BATON_TEST_WALL_OFFSET"] = offset.path();
  const auto years = std::chrono::year_month_day(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  const int later = static_cast<int>(years.year()) + 50;
  EXPECT_NE(run(made).out.find(std::to_string(later)), std::string::npos) << run(made).out;
}

TEST_F(Fleet, machines_share_the_fires_of_a_job) {
  write_fleet_jobs(1, "100ms");
  for (std::size_t i = 0; i < 3; ++i) start_node(i);
  const auto all_run = [&] {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
      return !logged(*node, {"FIRE_ENDED", "\"result\":\"ok\""}).empty();
    });
  };
  EXPECT_TRUE(poll_until(all_run, patience));
}

}  // namespace
}  // namespace baton::test
