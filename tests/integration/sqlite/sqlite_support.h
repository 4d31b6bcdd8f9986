#pragma once

// What the tests of the SQLite store share: a file of their own, a clock that they move, and
// requests as short as the promises that use them.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "store/sqlite/sqlite_store.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

inline const std::string kKey = "DEFAULT:report:2026-11";

inline Deadline soon() { return BootClock::now() + patience; }

inline Request acquire(const std::string& key, Millis queue_ttl = Millis{0}, Mode mode = Mode::X) {
  Request request;
  request.verb = Verb::acquire;
  request.grant = new_grant_id();
  request.targets = {{key, mode}};
  request.predicate = "building";
  request.owner = "node-1";
  request.channel = "this process";
  request.ttl = Millis(10'000);
  request.queue_ttl = queue_ttl;
  request.claim_within = Millis(5'000);
  return request;
}

inline Request same(Verb verb, const Request& of) {
  Request request;
  request.verb = verb;
  request.grant = of.grant;
  request.targets = of.targets;
  return request;
}

inline Reply ask(LockStore& store, const Request& request) {
  return store.apply({&request, 1}, soon()).value().at(0);
}

inline LockInfo look(LockStore& store, const std::string& key) {
  Request request;
  request.targets = {{key, Mode::X}};
  return *ask(store, request).info;
}

// Remembers that it was woken, and for whom.
class Ear final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    heard_.insert(heard_.end(), grants.begin(), grants.end());
    signal_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] { return calls_ > 0; });
  }
  [[nodiscard]] int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::vector<GrantId> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  int calls_ = 0;
  std::vector<GrantId> heard_;
};

// A connection of somebody else to the same file.
class Outsider {
 public:
  explicit Outsider(const std::string& path) {
    if (sqlite3_open(path.c_str(), &connection_) != SQLITE_OK) throw std::runtime_error(path);
    sqlite3_busy_timeout(connection_, 30'000);
  }
  ~Outsider() { sqlite3_close_v2(connection_); }
  Outsider(const Outsider&) = delete;
  Outsider& operator=(const Outsider&) = delete;

  sqlite3* get() { return connection_; }

  // The first column of the last row, or what went wrong.
  std::string run(const std::string& sql) {
    std::string answer;
    char* problem = nullptr;
    sqlite3_exec(
        connection_, sql.c_str(),
        [](void* to, int, char** values, char**) {
          *static_cast<std::string*>(to) = values[0] != nullptr ? values[0] : "";
          return 0;
        },
        &answer, &problem);
    if (problem != nullptr) answer = problem;
    sqlite3_free(problem);
    return answer;
  }

 private:
  sqlite3* connection_ = nullptr;
};

class SqliteTest : public testing::Test {
 protected:
  std::unique_ptr<LockStore> open(store::SqliteOptions options = {}) {
    if (options.path.empty()) options.path = path_;
    if (!options.now) {
      options.now = [this] { return core::StoreTime(micros_.load()); };
    }
    return store::open_sqlite_store_with(options, soon()).value();
  }
  void advance(Millis by) { micros_ += core::StoreTime(by).count(); }

  TempDir directory_{"baton-sqlite"};
  std::string path_ = directory_ / "locks.db";
  std::atomic<std::int64_t> micros_{1'000'000'000};
};

}  // namespace baton::test
