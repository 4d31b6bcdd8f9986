// A replica that takes part in a set of partitions, for tests that kill and stop it.
//
//   partition_replica url=URL node=ID data=FILE [count=N] [ttl=MS] [drain=MS]
//
// FILE is a SQLite database with the fence of the data and the table `history`, one row an event:
// b an owner begins, w it writes, e it has ended. Every row is fenced by the owner's lease, so that
// one that was overtaken cannot write any.
// Prints "ready", runs until its standard input ends, and then stops.

#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "baton/fence.h"
#include "baton/locks.h"
#include "baton/partitions.h"

namespace {

using namespace std::chrono_literals;
using baton::Millis;

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
using Database = std::unique_ptr<sqlite3, Close>;

Database open_data(const std::string& path) {
  sqlite3* opened = nullptr;
  const int failed = sqlite3_open(path.c_str(), &opened);
  Database database(opened);
  if (failed != SQLITE_OK) throw std::runtime_error("cannot open " + path);
  sqlite3_busy_timeout(database.get(), 10'000);
  return database;
}

bool run_sql(sqlite3* database, const std::string& sql) {
  return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

// False if somebody else owns the partition by now.
bool note(sqlite3* database, char event, baton::Partition& partition, const std::string& node) {
  if (!run_sql(database, "BEGIN IMMEDIATE")) throw std::runtime_error("the data is busy");
  const std::string row = "INSERT INTO history(event, partition, token, node) VALUES('" +
                          std::string(1, event) + "', " + std::to_string(partition.number()) +
                          ", " + std::to_string(partition.token()) + ", '" + node + "')";
  if (!baton::fence(database, partition) || !run_sql(database, row)) {
    run_sql(database, "ROLLBACK");
    return false;
  }
  return run_sql(database, "COMMIT");
}

int run(std::map<std::string, std::string> settings) {
  const auto number = [&](const std::string& key, int otherwise) {
    return settings.contains(key) ? std::stoi(settings[key]) : otherwise;
  };
  const std::string node = settings.at("node");
  auto locks = baton::open(settings.at("url"), {.owner = node}).value();
  const Millis drain(number("drain", 20));
  baton::Partitions set(
      locks, "relay/shop", static_cast<std::size_t>(number("count", 8)),
      {.ttl = Millis(number("ttl", 2'000)), .on_error = [](const baton::Error& error) {
         std::fprintf(stderr, "%s\n", error.message.c_str());
       }});
  set.start([&](baton::Partition& partition, const std::stop_token& stop) {
       const Database data = open_data(settings.at("data"));
       if (!note(data.get(), 'b', partition, node)) return;
       while (!stop.stop_requested()) {
         std::this_thread::sleep_for(50ms);
         if (!note(data.get(), 'w', partition, node)) return;
       }
       std::this_thread::sleep_for(drain);
       note(data.get(), 'e', partition, node);
     })
      .value();
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  set.stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> settings;
  for (int i = 1; i < argc; ++i) {
    const std::string pair = argv[i];
    const auto equals = pair.find('=');
    if (equals == std::string::npos) return 2;
    settings[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  try {
    return run(std::move(settings));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "partition_replica: %s\n", problem.what());
    return 1;
  }
}
