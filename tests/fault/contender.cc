// A replica for fault tests: takes one lock again and again, and writes down what it believes, so
// that a checker can judge afterwards. It is killed and paused by its parent.
//
//   contender contend URL SUBJECT HISTORY DATA TTL_MS HOLD_MS ROUNDS OWNER    (ROUNDS 0: for ever)
//   contender wait URL SUBJECT COUNT TTL_MS                                   waits till it is
//   killed
//
// HISTORY gets a line an event, each in one write(2), so that a SIGKILL loses none:
//   A <boot time ns> 0            asks for the lock, and waits
//   E <boot time ns> 0            the wait has ended without a grant
//   G <boot time ns> <token>      granted: the time is after the grant
//   B <boot time ns> <token>      believed to hold it at that time
//   W <boot time ns> <token>      wrote under it
//   R <boot time ns> <token>      wanted to write; the fence refused
//   L <boot time ns> <token>      has let go
// What is done to it, its parent notes: see fault.h.

#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "baton/fence.h"
#include "baton/locks.h"
#include "support/history_file.h"

namespace {

using namespace std::chrono_literals;
using baton::Millis;

class History {
 public:
  explicit History(const std::string& path) : file_(path) {}

  void note(char event, baton::Instant at, baton::Token token) const {
    file_.note(std::string(1, event) + ' ' + std::to_string(at.time_since_epoch().count()) + ' ' +
               std::to_string(token));
  }

 private:
  baton::test::HistoryFile file_;
};

class Data {
 public:
  explicit Data(const std::string& path) {
    sqlite3_open(path.c_str(), &database_);
    sqlite3_busy_timeout(database_, 60'000);
    run("PRAGMA synchronous = OFF");
  }
  ~Data() { sqlite3_close(database_); }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  bool write(const baton::Lease& lease) {
    run("BEGIN IMMEDIATE");
    if (const auto allowed = baton::fence(database_, lease); !allowed) {
      run("ROLLBACK");
      if (allowed.error().code == baton::Code::fenced) return false;
      std::fprintf(stderr, "fence: %s\n", allowed.error().message.c_str());
      std::exit(3);
    }
    run("INSERT INTO entry (token) VALUES (" + std::to_string(lease.token()) + ")");
    run("COMMIT");
    return true;
  }

 private:
  void run(const std::string& sql) {
    if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
    std::fprintf(stderr, "%s: %s\n", sql.c_str(), sqlite3_errmsg(database_));
    std::exit(3);
  }
  sqlite3* database_ = nullptr;
};

baton::LockClient open_or_die(const std::string& url, const std::string& owner) {
  for (int i = 0; i < 600; ++i) {
    auto locks = baton::open(url, {.owner = owner});
    if (locks) return *locks;
    if (!locks.error().retryable) {
      std::fprintf(stderr, "%s\n", locks.error().message.c_str());
      std::exit(2);
    }
    std::this_thread::sleep_for(50ms);
  }
  std::exit(2);
}

int contend(const std::vector<std::string>& words) {
  const std::string& owner = words.at(9);
  auto locks = open_or_die(words.at(2), owner);
  const History history(words.at(4));
  Data data(words.at(5));
  const Millis ttl(std::stol(words.at(6)));
  const Millis hold(std::stol(words.at(7)));
  const long rounds = std::stol(words.at(8));
  std::puts("started");
  std::fflush(stdout);
  for (long round = 0; rounds == 0 || round < rounds;) {
    history.note('A', baton::BootClock::now(), 0);
    auto lease = locks.acquire({.subject = words.at(3)}, {.ttl = ttl, .wait = 120s});
    if (!lease) {
      if (!lease.error().retryable) {
        std::fprintf(stderr, "acquire: %s\n", lease.error().message.c_str());
        return 4;
      }
      history.note('E', baton::BootClock::now(), 0);
      continue;
    }
    ++round;
    const baton::Token token = lease->token();
    history.note('G', baton::BootClock::now(), token);
    const auto until = baton::BootClock::now() + hold;
    do {
      // The time first: if valid() is true a little later, it was so then.
      const auto at = baton::BootClock::now();
      if (lease->valid()) history.note('B', at, token);
      std::this_thread::sleep_for(1ms);
    } while (baton::BootClock::now() < until);
    // On purpose without asking valid(): the fence must be enough.
    const bool written = data.write(*lease);
    history.note(written ? 'W' : 'R', baton::BootClock::now(), token);
    { const baton::Lease gone = std::move(*lease); }
    history.note('L', baton::BootClock::now(), token);
  }
  return 0;
}

int wait_for_ever(const std::vector<std::string>& words) {
  auto locks = open_or_die(words.at(2), "waiting");
  const int count = std::stoi(words.at(4));
  for (int i = 0; i < count; ++i) {
    locks.acquire_async({{.subject = words.at(3)}},
                        {.ttl = Millis(std::stol(words.at(5))), .wait = 3600s},
                        [](baton::Result<baton::Lease> lease) {
                          if (lease) std::puts("granted");
                        });
  }
  std::puts("started");
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 10 && words[1] == "contend") return contend(words);
  if (words.size() == 6 && words[1] == "wait") return wait_for_ever(words);
  std::fprintf(stderr, "see the head of contender.cc\n");
  return 2;
}
