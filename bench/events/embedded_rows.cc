// The embedded broker: what is published in a second, and how its messages are divided.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <stdexcept>

#include <sqlite3.h>

#include "events/rows.h"
#include "harness/statistics.h"
#include "support/process.h"

namespace baton::bench {
namespace {

constexpr std::size_t kBatch = 100;
constexpr std::size_t kBody = 512;
constexpr std::size_t kConsumers = 3;

Message message() {
  return {.exchange = "bench",
          .routing_key = "order.placed",
          .id = "0190b0a0-0000-7000-8000-000000000000",
          .body = std::string(kBody, 'x'),
          .headers = {{"type", "OrderPlaced"}, {"aggregate", "order-7"}}};
}

// Plain SQLite: a batch of INSERTs into a table like the broker's, in one transaction whose commit
// waits for the disk.
class SqliteFloor {
 public:
  explicit SqliteFloor(const std::string& path) {
    check(sqlite3_open(path.c_str(), &database_));
    script(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE message (place INTEGER PRIMARY KEY, id TEXT NOT NULL, exchange TEXT NOT NULL,"
        " routing_key TEXT NOT NULL, content_type TEXT NOT NULL, headers BLOB NOT NULL,"
        " body BLOB NOT NULL)");
    check(
        sqlite3_prepare_v3(database_,
                           "INSERT INTO message (id, exchange, routing_key, content_type, headers,"
                           " body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                           -1, SQLITE_PREPARE_PERSISTENT, &insert_, nullptr));
  }
  ~SqliteFloor() {
    sqlite3_finalize(insert_);
    sqlite3_close(database_);
  }
  SqliteFloor(const SqliteFloor&) = delete;
  SqliteFloor& operator=(const SqliteFloor&) = delete;

  void publish() {
    script("BEGIN IMMEDIATE");
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::string headers = "type=OrderPlaced aggregate=order-7";
      int column = 0;
      for (const std::string* text :
           {&message_.id, &message_.exchange, &message_.routing_key, &message_.content_type}) {
        sqlite3_bind_text(insert_, ++column, text->data(), static_cast<int>(text->size()),
                          SQLITE_STATIC);
      }
      for (const std::string* bytes : {&headers, &message_.body}) {
        sqlite3_bind_blob(insert_, ++column, bytes->data(), static_cast<int>(bytes->size()),
                          SQLITE_STATIC);
      }
      check(sqlite3_step(insert_));
      sqlite3_reset(insert_);
    }
    script("COMMIT");
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE) {
      throw std::runtime_error(sqlite3_errmsg(database_));
    }
  }
  void script(const char* sql) { check(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr)); }

  const Message message_ = message();
  sqlite3* database_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};

void publish(Publisher& publisher, const std::vector<Message>& batch) {
  (void)publisher.publish(batch, soon()).value();
  const auto confirms = publisher.confirms(soon()).value();
  const bool taken = std::all_of(confirms.begin(), confirms.end(), [](const Confirm& confirm) {
    return confirm.outcome == PublishOutcome::taken;
  });
  if (!taken || confirms.size() != batch.size()) throw std::runtime_error("not published");
}

std::shared_ptr<Broker> new_broker(Lab& lab, const std::string& url) {
  auto broker = Broker::open(url).value();
  lab.declare(*broker, "bench");
  return broker;
}

}  // namespace

std::vector<Figure> embedded_publish(Lab& lab) {
  const auto broker = new_broker(lab, "embedded:" + (lab.directory().path() / "broker").string());
  const auto publisher = broker->publisher().value();
  const std::vector<Message> batch(kBatch, message());
  SqliteFloor floor(lab.directory().path() / "floor");
  const Pairs pairs = take_turns(lab.options().slices, [&] {
    return interleave(lab.options().slice, by_threads({[&] { publish(*publisher, batch); }}),
                      by_threads({[&] { floor.publish(); }}));
  });
  const auto messages = [](const std::vector<double>& batches) {
    return median(batches) * static_cast<double>(kBatch);
  };
  return {{.row = "embedded-publish",
           .what = "embedded broker, batches of 100, 512 bytes, against a raw SQLite loop",
           .unit = "messages/s",
           .ours = messages(pairs.ours),
           .floor = messages(pairs.floor),
           .score = median(ratios(pairs.ours, pairs.floor)),
           .bound = Bound::at_least,
           .target = 0.7}};
}

// Three processes on one queue. Each begins when all have subscribed.
std::vector<Figure> embedded_consumers(Lab& lab) {
  constexpr std::size_t kMessages = 200'000;
  constexpr std::size_t kAtOnce = 1'000;
  const std::string url = "embedded:" + (lab.directory().path() / "shared").string();
  const auto publisher = new_broker(lab, url)->publisher().value();
  const std::vector<Message> batch(kAtOnce, message());
  for (std::size_t i = 0; i < kMessages; i += kAtOnce) publish(*publisher, batch);
  std::vector<std::unique_ptr<test::Process>> consumers;
  for (std::size_t i = 0; i < kConsumers; ++i) {
    consumers.push_back(std::make_unique<test::Process>(
        test::ProcessOptions{.argv = {"/proc/self/exe", "consumer", url, "bench"}}));
  }
  for (const auto& consumer : consumers) {
    if (!consumer->wait_for_out("ready")) throw std::runtime_error("a consumer has not started");
  }
  for (const auto& consumer : consumers) (void)consumer->write("go\n");
  std::vector<double> shares;
  double rate = 0;
  for (const auto& consumer : consumers) {
    if (!consumer->wait(std::chrono::seconds(120))) throw std::runtime_error("a consumer hangs");
    long count = 0;
    double seconds = 0;
    if (std::sscanf(consumer->out().c_str(), "ready\n%ld %lf", &count, &seconds) != 2) {
      throw std::runtime_error("a consumer has failed: " + consumer->err());
    }
    shares.push_back(100.0 * static_cast<double>(count) / static_cast<double>(kMessages));
    rate += static_cast<double>(count) / seconds;
  }
  Figure figure{.row = "embedded-consumers",
                .what = "the least of three consumers' shares of the messages",
                .unit = "%",
                .ours = *std::min_element(shares.begin(), shares.end()),
                .bound = Bound::at_least,
                .target = 15,
                .details = {{"messages/s of all", rate},
                            {"most, %", *std::max_element(shares.begin(), shares.end())}}};
  figure.score = figure.ours;
  return {std::move(figure)};
}

//   bench_events consumer URL QUEUE
//
// Says `ready`, waits for a line, and takes and settles until there is nothing left. Then says how
// many messages it had, and in how many seconds.
int run_consumer(const std::vector<std::string>& words) {
  const auto broker = Broker::open(words.at(0)).value();
  const auto from = broker->subscribe(words.at(1), {.prefetch = 64}, soon()).value();
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  const auto start = BootClock::now();
  Instant last = start;
  std::size_t count = 0;
  for (;;) {
    const auto taken = from->take(32, BootClock::now() + Millis(1'000)).value();
    if (taken.empty()) break;
    std::vector<Settlement> settlements;
    for (const Delivery& delivery : taken) settlements.push_back({.tag = delivery.tag});
    from->settle(settlements, soon()).value();
    count += taken.size();
    last = BootClock::now();
  }
  std::printf("%zu %.6f\n", count, std::chrono::duration<double>(last - start).count());
  return 0;
}

}  // namespace baton::bench
