// How many documents a second POST /documents takes, against the two INSERTs that it makes.

#include <memory>
#include <stdexcept>

#include "baton/event.h"
#include "documents/http_load.h"
#include "documents/platform.h"
#include "documents/rows.h"
#include "harness/machine.h"
#include "harness/statistics.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

constexpr int kConnections = 64;
constexpr int kSessions = 8;  // as many as a service has for requests

// A transaction of the service, by hand.
class Writer {
 public:
  explicit Writer(const std::string& database) : session_(database) {
    session_.prepare("begin", "BEGIN");
    session_.prepare("commit", "COMMIT");
    session_.prepare(
        "document",
        "INSERT INTO documents (id, title, content_type, content, metadata, owner, correlation_id,"
        " created_at, updated_at) VALUES ($1, 'A letter', 'text/plain', $2, '{}', 'ann', $3,"
        " now(), now())");
    session_.prepare(
        "event",
        "INSERT INTO outbox_events (lane, slot, event_id, type, aggregate_type, aggregate_id,"
        " exchange, routing_key, payload, headers, correlation_id, version) VALUES ($1, 0, $2,"
        " 'DocumentUploaded', 'Document', $3, 'documents', 'document.uploaded', $4, '{}', $3, 1)");
  }

  void write() {
    const std::string id = make_event_id();
    const std::string event_id = make_event_id();
    const std::string body = a_document();
    const std::string lane = std::to_string(++number_ % 16);
    session_.run("begin", {});
    session_.run("document", {id.c_str(), body.c_str(), id.c_str()});
    session_.run("event", {lane.c_str(), event_id.c_str(), id.c_str(), body.c_str()});
    session_.run("commit", {});
  }

 private:
  Session session_;
  int number_ = 0;
};

class Comparison {
 public:
  Comparison(Lab& lab, Platform& platform, std::vector<Step> floor)
      : postgres_(lab.postgres().pid()),
        broker_(Broker::open(lab.rabbitmq().url()).value()),
        platform_(platform),
        floor_(by_threads(std::move(floor))),
        load_(platform.port("ingestion"), kConnections) {}

  // `relay`: publishes meanwhile, and has come to an end before the floor's turn.
  Figure measure(std::string what, bool relay) {
    Spent ours;
    Spent floor;
    const Pairs pairs = take_turns(kSlices, [&] {
      return interleave(
          kSlice,
          [&](std::chrono::milliseconds time) {
            return ours.add(*this, [&] {
              const Slice slice = load_.run(time, [] { return a_document(); });
              submitted_ += slice.steps;
              if (relay) wait_for_relay();
              return slice;
            });
          },
          [&](std::chrono::milliseconds time) {
            return floor.add(*this, [&] { return floor_(time); });
          });
    });
    return {.row = "submit",
            .what = std::move(what),
            .unit = "documents/s",
            .ours = median(pairs.ours),
            .floor = median(pairs.floor),
            .score = median(ratios(pairs.ours, pairs.floor)),
            .bound = Bound::at_least,
            .details = {{"service us/document", ours.each(ours.service)},
                        {"PostgreSQL us/document", ours.each(ours.postgres)},
                        {"client us/document", ours.each(ours.all.cpu)},
                        {"floor's PostgreSQL us/document", floor.each(floor.postgres)},
                        {"floor's client us/document", floor.each(floor.all.cpu)}}};
  }

  // Until all is in the broker. Nobody consumes it.
  void wait_for_relay() const {
    const auto published = [&] {
      return broker_->queues({.queues = {{.name = "document.uploaded.q"}}}, soon())
          .value()
          .front()
          .ready;
    };
    if (!test::poll_until([&] { return published() >= submitted_; }, std::chrono::minutes(2))) {
      throw std::runtime_error("the relay does not come to an end");
    }
  }

 private:
  static constexpr int kSlices = 5;
  static constexpr std::chrono::milliseconds kSlice{2'000};

  // Seconds of processor time.
  struct Spent {
    Slice all;
    double service = 0;
    double postgres = 0;

    Slice add(const Comparison& where, const std::function<Slice()>& work) {
      const pid_t ingestion = where.platform_.pid("ingestion");
      const double service_before = cpu_seconds_of_process(ingestion);
      const double postgres_before = cpu_seconds_of_family(where.postgres_);
      const Slice slice = work();
      service += cpu_seconds_of_process(ingestion) - service_before;
      postgres += cpu_seconds_of_family(where.postgres_) - postgres_before;
      all += slice;
      return slice;
    }
    [[nodiscard]] double each(double seconds) const {
      return seconds / static_cast<double>(all.steps) * 1e6;
    }
  };

  const pid_t postgres_;
  const std::shared_ptr<Broker> broker_;
  Platform& platform_;
  std::uint64_t submitted_ = 0;
  const Load floor_;
  HttpLoad load_;
};

}  // namespace

std::vector<Figure> submit(Lab& lab, const Amounts& /*amounts*/) {
  Platform platform(lab, "submit");
  platform.start("ingestion");  // makes its tables
  platform.stop("ingestion");
  const std::string floor_database = lab.copy_database("submit_floor", "submit_ingestion");
  platform.start("ingestion");
  std::vector<Step> floor;
  for (int i = 0; i < kSessions; ++i) {
    const auto writer = std::make_shared<Writer>(floor_database);
    floor.push_back([writer] { writer->write(); });
  }
  Comparison comparison(lab, platform, floor);
  // A broker that takes nothing: POST alone, without what the relay does meanwhile.
  lab.rabbitmq().set_memory_alarm(true);
  Figure alone = comparison.measure(
      "POST /documents, 64 connections, against the two INSERTs in 8 raw sessions", false);
  alone.target = 0.5;
  lab.rabbitmq().set_memory_alarm(false);
  comparison.wait_for_relay();
  Figure with_relay = comparison.measure("the same while the relay publishes them", true);
  return {std::move(alone), std::move(with_relay)};
}

}  // namespace baton::bench
