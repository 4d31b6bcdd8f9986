#include "store/sqlite/examine.h"

#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <sqlite3.h>

#include "core/document.h"
#include "store/common/findings.h"
#include "store/sqlite/database.h"
#include "store/sqlite/location.h"
#include "store/sqlite/lock_file.h"

namespace baton::store::sqlite {
namespace {

// From linux/magic.h.
constexpr std::uint64_t kTmpfs = 0x01021994;
constexpr std::uint64_t kRamfs = 0x858458F6;
constexpr std::uint64_t kOverlay = 0x794C7630;

class Examiner : private Findings {
 public:
  Examiner(std::string path, const Checkup& checkup, Deadline deadline)
      : path_(std::move(path)), checkup_(checkup), deadline_(deadline) {}

  Result<std::vector<Finding>> run() {
    if (auto looked = place(); !looked) return looked.error();
    struct stat file {};
    if (::stat(path_.c_str(), &file) == 0) {
      if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        add("writable-by-others", Severity::advice, "other users may write to " + path_,
            "anyone who can write it can take, break or forget any lock",
            "chmod 600 " + path_ + ", unless that is meant so");
      }
      if (file.st_size > 0) {
        if (auto looked = content(); !looked) return looked.error();
      }
    }
    return worst_first();
  }

 private:
  // The nearest directory above the file that is there.
  [[nodiscard]] std::string where() const {
    std::filesystem::path at = path_;
    std::error_code ignored;
    while (at.has_relative_path() && !std::filesystem::exists(at, ignored)) at = at.parent_path();
    return at.string();
  }

  Result<void> place() {
    struct statfs system {};
    const std::string at = where();
    if (::statfs(at.c_str(), &system) != 0) return explain(SQLITE_CANTOPEN, at, {}, errno);
    const std::uint64_t type =
        checkup_.filesystem.value_or(static_cast<std::uint64_t>(system.f_type) & 0xFFFFFFFF);
    if (const auto network = network_filesystem(type)) {
      add("network-filesystem", Severity::danger, path_ + " is on " + std::string(*network),
          "Baton refuses to work here: locks of other machines would not be seen",
          "a local disk; or for several machines another store, such as postgres:");
    }
    if (type == kTmpfs || type == kRamfs) {
      add("memory-filesystem", Severity::warning, path_ + " is in memory only",
          "after a reboot tokens start again from 1: every fence refuses every write until baton "
          "fence rebase, and notes are gone",
          "a file on a disk");
    }
    if (type == kOverlay) {
      add("container-filesystem", Severity::advice, path_ + " is in a container's own layer",
          "other containers on this machine have another file, and lock nothing against this one; "
          "it goes with the container",
          "a volume that all of them share");
    }
    const std::uint64_t free =
        static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize);
    if (free < checkup_.least_free) {
      add("little-space", Severity::warning,
          "only " + std::to_string(free >> 20) + " MiB are free where " + path_ + " is",
          "when the disk is full nothing can be granted or renewed, and leases are lost",
          "free some space, or put the file elsewhere");
    }
    return {};
  }

  Result<void> content() {
    auto database = Database::open(path_, deadline_);
    if (!database) return database.error();
    const auto intact = (*database)->ask("PRAGMA quick_check(1)");
    if (!intact || *intact != "ok") {
      add("damaged", Severity::danger,
          path_ + " is damaged: " + (intact ? *intact : intact.error().message),
          "locks and tokens in it cannot be trusted",
          "stop all that use it, restore it or make a new one, then baton fence rebase");
      return {};
    }
    const auto version = schema_version(**database);
    if (!version) return version.error();
    if (*version == 0) return {};  // the first process that opens it makes one
    if (auto finding = schema_finding(*version, kSchemaVersion,
                                      "baton store migrate --store sqlite:" + path_)) {
      add(std::move(finding));
      return {};
    }
    if (const auto mode = (*database)->ask("PRAGMA journal_mode"); mode && *mode != "wal") {
      add("journal-mode", Severity::warning,
          "somebody has set the journal mode to " + *mode + "; Baton uses wal",
          "until Baton opens the file next, readers and writers keep each other waiting, and a "
          "crash "
          "may cost the last commits",
          "baton store migrate, and leave the file to Baton");
    }
    if (auto looked = documents(**database); !looked) return looked;
    return speed(**database);
  }

  Result<void> documents(Database& database) {
    auto rows = database.prepare("SELECT key, doc FROM baton_lock ORDER BY key");
    if (!rows) return rows.error();
    std::vector<std::string> damaged;
    while (BootClock::now() < deadline_) {
      const auto row = rows->step();
      if (!row) return row.error();
      if (!*row) break;
      if (!core::from_document(rows->text(1))) damaged.emplace_back(rows->text(0));
    }
    add(damaged_finding(damaged));
    return {};
  }

  // As a grant does it: the write lock, and then the disk.
  Result<void> speed(Database& database) {
    database.wait_until(std::min(deadline_, BootClock::now() + checkup_.ttl));
    const auto slowest = slowest_of(4, [&] {
      auto transaction = Transaction::begin(database, Transaction::Kind::write);
      if (!transaction) return false;
      return database.sync().has_value();
    });
    if (!slowest) {
      add("slow", Severity::danger, "the write lock of " + path_ + " was not free in time",
          "nothing can be granted or renewed meanwhile, and leases are lost",
          "find who holds it, as with fuser " + path_ +
              ": transactions on this file must be short");
    } else {
      add(slow_finding(*slowest, checkup_.ttl, path_));
    }
    return {};
  }

  const std::string path_;
  const Checkup& checkup_;
  const Deadline deadline_;
};

}  // namespace

Result<std::vector<Finding>> examine(const std::string& path, const Checkup& checkup,
                                     Deadline deadline) {
  return Examiner(path, checkup, deadline).run();
}

}  // namespace baton::store::sqlite
