// A small service for the dashboards: events_node FOLDER
//
// Adds events to its outbox and its event log, handles what a relay publishes of them, and keeps a
// view, until it is killed. Some events fail at first, some are refused, one message is no event.
// The metrics are served where its first line says.

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "baton/broker.h"
#include "baton/consumer.h"
#include "baton/consumer_metrics.h"
#include "baton/event_log.h"
#include "baton/inbox.h"
#include "baton/locks.h"
#include "baton/metrics_server.h"
#include "baton/outbox.h"
#include "baton/processor_metrics.h"
#include "baton/processors.h"
#include "sql/connection.h"
#include "sql/transaction.h"

namespace {

using namespace std::chrono_literals;

void add_events(baton::sql::Connection& database) {
  const baton::Outbox outbox({.exchange = "shop"});
  const baton::EventLog log;
  for (int number = 0;; ++number) {
    const baton::Event event{.type = "OrderPlaced",
                             .aggregate = "order-" + std::to_string(number % 50),
                             .payload = std::to_string(number)};
    const auto added = database.transaction([&](baton::sql::Transaction&) -> baton::Result<void> {
      auto id = outbox.add(database.sqlite(), event);
      if (!id) return id.error();
      auto appended = log.append(database.sqlite(), event.aggregate, {&event, 1});
      if (!appended) return appended.error();
      return {};
    });
    // Another process had the database for too long: the next event may come through.
    if (!added) std::fprintf(stderr, "%s\n", added.error().message.c_str());
    std::this_thread::sleep_for(20ms);
  }
}

baton::Handled handle(baton::Handling& handling) {
  const int number = std::stoi(handling.event().payload);
  if (number % 10 == 3 && handling.attempt() == 1) return baton::failed("the first time it fails");
  if (number % 10 == 7) return baton::business_error("no sevens");
  return baton::done();
}

void publish_what_is_no_event(baton::Broker& broker) {
  const auto publisher = broker.publisher().value();
  const baton::Message message{.exchange = "shop", .routing_key = "order.placed", .body = "?"};
  publisher->publish({&message, 1}, baton::BootClock::now() + 10s).value();
}

void run(const std::string& folder) {
  const std::string url = "sqlite:" + folder + "/service.db";
  std::ofstream(folder + "/service.db", std::ios::app).flush();
  const auto database = baton::sql::Connection::open(url).value();
  baton::install_outbox(database->sqlite()).value();
  baton::install_inbox(database->sqlite()).value();
  baton::install_event_log(database->sqlite()).value();
  const std::shared_ptr<baton::Broker> broker =
      baton::Broker::open("embedded:" + folder + "/broker.db").value();

  const auto metrics = std::make_shared<baton::observe::Metrics>();
  const auto server = baton::observe::MetricsServer::start("127.0.0.1:0", metrics).value();
  const baton::observe::ConsumerMetrics counting(metrics, "billing");
  const baton::observe::ProcessorMetrics watching(metrics, url, 500ms);

  baton::ConsumerOptions options{
      .name = "billing", .queue = "billing", .exchange = "shop", .bind = {"order.*"}};
  options.retry_delays = {100ms};
  options.on_note = [&](const baton::ConsumerNote& note) { counting.count(note); };
  baton::Consumer consumer(broker, url, options, handle);
  consumer.start().value();

  baton::ProcessorsOptions quick;
  quick.on_error = [&](const std::string& name, const baton::Error&) {
    watching.count_error(name);
  };
  baton::Processors processors(baton::open("memory:").value(), url, "shop", quick);
  processors.add_view("orders", {}, [](baton::EventBatch&) { return baton::Result<void>(); })
      .value();
  const std::jthread running([&](const std::stop_token& stop) { (void)processors.run(stop); });

  std::printf("metrics on %s/metrics\n", server->url().c_str());
  std::fflush(stdout);
  publish_what_is_no_event(*broker);
  add_events(*database);
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 2) throw std::runtime_error("events_node FOLDER");
    run(words[1]);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
