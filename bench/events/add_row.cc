// What an event adds to the transaction of 16 writers.

#include <memory>

#include "baton/outbox.h"
#include "events/rows.h"
#include "harness/statistics.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr int kWriters = 16;

// A transaction of a service: a row of its business, and something second.
class Writer {
 public:
  explicit Writer(const std::string& database) : session_(database) {
    session_.prepare("begin", "BEGIN");
    session_.prepare("commit", "COMMIT");
    session_.prepare("business", "INSERT INTO business (note) VALUES ($1)");
    session_.prepare("plain", "INSERT INTO plain (id, note, body) VALUES ($1::uuid, $2, $3)");
  }

  void with_event() {
    begin();
    outbox_
        .add(session_.postgres(), {.type = "OrderPlaced",
                                   .aggregate = "order-" + std::to_string(++number_ % 1'000),
                                   .aggregate_type = "order",
                                   .payload = body_})
        .value();
    session_.run("commit", {});
  }
  void with_row() {
    begin();
    const std::string note = "OrderPlaced order order.placed shop order-" +
                             std::to_string(++number_ % 1'000) + " PENDING {}";
    session_.run("plain", {make_event_id().c_str(), note.c_str(), body_.c_str()});
    session_.run("commit", {});
  }

 private:
  void begin() {
    session_.run("begin", {});
    session_.run("business", {"an order of three things"});
  }

  Session session_;
  const Outbox outbox_{{.exchange = "shop"}};
  const std::string body_ = "\"" + std::string(510, 'x') + "\"";
  int number_ = 0;
};

}  // namespace

std::vector<Figure> outbox_add(Lab& lab) {
  const std::string database = lab.new_database("writers");
  Session admin(database);
  install_outbox(admin.postgres()).value();
  admin.ask(
      "CREATE TABLE business (id bigserial PRIMARY KEY, note text NOT NULL);"
      "CREATE TABLE plain (id uuid PRIMARY KEY, note text NOT NULL, body text NOT NULL,"
      " created_at timestamptz NOT NULL DEFAULT clock_timestamp())");
  std::vector<Step> events;
  std::vector<Step> rows;
  for (int i = 0; i < kWriters; ++i) {
    const auto writer = std::make_shared<Writer>(database);
    events.push_back([writer] { writer->with_event(); });
    rows.push_back([writer] { writer->with_row(); });
  }
  const Pairs pairs = take_turns(lab.options().slices, [&] {
    return interleave(lab.options().slice, by_threads(events), by_threads(rows));
  });
  return {{.row = "add",
           .what = "16 writers, a row and an event, against a row and a second one of that size",
           .unit = "commits/s",
           .ours = median(pairs.ours),
           .floor = median(pairs.floor),
           .score = median(ratios(pairs.ours, pairs.floor)),
           .bound = Bound::at_least,
           .target = 0.8}};
}

}  // namespace baton::bench
