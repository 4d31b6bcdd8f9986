// shop ORDER: takes an order and tells others of it.

#include <baton/broker.h>
#include <baton/locks.h>
#include <baton/outbox.h>
#include <baton/relay.h>
#include <sqlite3.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stop_token>
#include <string>

int fail(const std::string& why) {
  std::fprintf(stderr, "shop: %s\n", why.c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return fail("usage: shop ORDER");
  const std::string order = argv[1];

  sqlite3* database = nullptr;
  sqlite3_open("shop.db", &database);
  sqlite3_busy_timeout(database, 5'000);
  const auto run = [&](const char* sql) {
    return sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  if (!run("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, total INTEGER)")) {
    return fail(sqlite3_errmsg(database));
  }
  if (auto made = baton::install_outbox(database); !made) return fail(made.error().message);

  // Both or neither: the order, and the event that tells of it.
  const baton::Outbox outbox({.exchange = "shop"});
  if (!run("BEGIN IMMEDIATE")) return fail(sqlite3_errmsg(database));
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(database, "INSERT INTO orders VALUES (?1, 30)", -1, &insert, nullptr);
  sqlite3_bind_text(insert, 1, order.c_str(), -1, SQLITE_STATIC);
  sqlite3_step(insert);
  if (sqlite3_finalize(insert) != SQLITE_OK) return fail(sqlite3_errmsg(database));
  const auto event = outbox.add(
      database, {.type = "OrderPlaced", .aggregate = order, .payload = R"({"total":30})"});
  if (!event) return fail(event.error().message);
  if (!run("COMMIT")) return fail(sqlite3_errmsg(database));

  // A service lets the relay run beside its work, or leaves all of this to `baton relay`. Here it
  // ends as soon as the event is published.
  std::ifstream file("shop.yaml");
  const std::string yaml(std::istreambuf_iterator<char>(file), {});
  const auto topology = baton::parse_topology(yaml);
  if (!topology) return fail("shop.yaml: " + topology.error().message);
  auto broker = baton::Broker::open("embedded:broker.db");
  if (!broker) return fail(broker.error().message);
  auto locks = baton::open("sqlite:locks.db");
  if (!locks) return fail(locks.error().message);
  std::stop_source published;
  baton::RelayOptions options{.topology = *topology};
  options.on_error = [](const baton::Error& error) { fail(error.message); };
  options.on_event = [&](const baton::RelayEvent& told) {
    const bool done = told.kind == baton::RelayEvent::Kind::published;
    if (done && told.event_id == *event) published.request_stop();
  };
  baton::Relay relay(*locks, "sqlite:shop.db", *broker, options);
  if (auto ended = relay.run(published.get_token()); !ended) return fail(ended.error().message);
  std::printf("%s is published\n", order.c_str());
  sqlite3_close(database);
  return 0;
}
