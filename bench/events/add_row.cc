// What an event adds to the transaction of 16 writers.

#include <memory>

#include "baton/outbox.h"
#include "events/rows.h"
#include "harness/statistics.h"
#include "locks/session.h"

namespace baton::bench {
namespace {

constexpr int kWriters = 16;
constexpr const char* kPlain = "INSERT INTO plain (id, note, body) VALUES ($1::uuid, $2, $3)";

// A transaction of a service: a row of its business, and something second.
class Writer {
 public:
  explicit Writer(const std::string& database) : session_(database) {
    session_.prepare("begin", "BEGIN");
    session_.prepare("commit", "COMMIT");
    session_.prepare("business", "INSERT INTO business (note) VALUES ($1)");
    session_.prepare("plain", kPlain);
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
  // Sent as Outbox::add sends its own: it prepares nothing on a connection that is not its own.
  void with_row(bool prepared) {
    begin();
    const std::string id = make_event_id();
    const std::string note = "OrderPlaced order order.placed shop order-" +
                             std::to_string(++number_ % 1'000) + " PENDING {}";
    if (prepared) {
      session_.run("plain", {id.c_str(), note.c_str(), body_.c_str()});
    } else {
      session_.run_once(kPlain, {id.c_str(), note.c_str(), body_.c_str()});
    }
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
  std::vector<Step> prepared_rows;
  for (int i = 0; i < kWriters; ++i) {
    const auto writer = std::make_shared<Writer>(database);
    events.push_back([writer] { writer->with_event(); });
    rows.push_back([writer] { writer->with_row(false); });
    prepared_rows.push_back([writer] { writer->with_row(true); });
  }
  const auto compare = [&](const std::vector<Step>& floor) -> Figure {
    const Pairs pairs = take_turns(lab.options().slices, [&] {
      return interleave(lab.options().slice, by_threads(events), by_threads(floor));
    });
    return {.row = "add",
            .unit = "commits/s",
            .ours = median(pairs.ours),
            .floor = median(pairs.floor),
            .score = median(ratios(pairs.ours, pairs.floor)),
            .bound = Bound::at_least};
  };
  Figure figure = compare(rows);
  figure.what = "16 writers, a row and an event, against a row and a second one of that size";
  figure.target = 0.8;
  Figure prepared = compare(prepared_rows);
  prepared.what = "the same, the second row by a prepared statement";
  return {std::move(figure), std::move(prepared)};
}

}  // namespace baton::bench
