// billing: makes one bill of each order and tells others of that, until it is ended.

#include <baton/broker.h>
#include <baton/consumer.h>
#include <baton/inbox.h>
#include <baton/outbox.h>
#include <signal.h>
#include <sqlite3.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

int fail(const std::string& why) {
  std::fprintf(stderr, "billing: %s\n", why.c_str());
  return 1;
}

// Inside a transaction of billing.db, which is committed if it is done: the bill, the event, and
// that this event has been handled. It is not called again for a message that comes twice.
baton::Handled make_bill(baton::Handling& handling) {
  const std::string& order = handling.event().aggregate;
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(handling.sqlite(), "INSERT INTO bills VALUES (?1)", -1, &insert, nullptr);
  sqlite3_bind_text(insert, 1, order.c_str(), -1, SQLITE_STATIC);
  sqlite3_step(insert);
  if (sqlite3_finalize(insert) != SQLITE_OK) {
    return baton::failed(sqlite3_errmsg(handling.sqlite()));  // tried again, then a dead letter
  }
  const auto told = handling.outbox().add({.type = "OrderBilled", .aggregate = order});
  if (!told) return baton::failed(told.error().message);
  return baton::done();
}

int main() {
  sigset_t ends;  // before there are threads, which inherit it
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  sqlite3* database = nullptr;
  sqlite3_open("billing.db", &database);
  sqlite3_busy_timeout(database, 5'000);
  sqlite3_exec(database, "CREATE TABLE IF NOT EXISTS bills (id TEXT PRIMARY KEY)", nullptr, nullptr,
               nullptr);
  if (auto made = baton::install_inbox(database); !made) return fail(made.error().message);
  if (auto made = baton::install_outbox(database); !made) return fail(made.error().message);
  sqlite3_close(database);

  std::ifstream file("shop.yaml");
  const std::string yaml(std::istreambuf_iterator<char>(file), {});
  const auto topology = baton::parse_topology(yaml);
  if (!topology) return fail("shop.yaml: " + topology.error().message);
  auto broker = baton::Broker::open("embedded:broker.db");
  if (!broker) return fail(broker.error().message);

  baton::ConsumerOptions options{.name = "billing", .queue = "billing", .topology = *topology};
  options.outbox.exchange = "shop";
  options.on_note = [](const baton::ConsumerNote& note) {
    if (note.event == nullptr) return;
    std::printf("%s: %s\n", note.event->aggregate.c_str(), std::string(note.message).c_str());
    std::fflush(stdout);
  };
  baton::Consumer billing(*broker, "sqlite:billing.db", options, make_bill);
  if (auto started = billing.start(); !started) return fail(started.error().message);
  int signal = 0;
  sigwait(&ends, &signal);
  const auto ended = billing.stop();  // after what is in hand
  return ended ? 0 : fail(ended.error().message);
}
