#include "events/lab.h"

#include <cstdio>

#include "locks/session.h"

namespace baton::bench {

void say(const std::string& text) { std::fprintf(stderr, "  %s\n", text.c_str()); }

Deadline soon() { return BootClock::now() + Millis(30'000); }

test::RabbitServer& Lab::rabbitmq() {
  if (!rabbitmq_) {
    say("starting a private RabbitMQ");
    rabbitmq_ = std::make_unique<test::RabbitServer>(test::RabbitOptions{.on_disk = true});
  }
  return *rabbitmq_;
}

test::PostgresServer& Lab::postgres() {
  if (!postgres_) {
    say("starting a private PostgreSQL");
    postgres_ = std::make_unique<test::PostgresServer>(
        test::PostgresOptions{.settings = {{"fsync", "on"}, {"shared_buffers", "1GB"}}});
  }
  return *postgres_;
}

std::string Lab::new_database(const std::string& name) {
  Session(postgres().socket_url()).ask("CREATE DATABASE " + name);
  return postgres().socket_url(name);
}

std::string Lab::copy_database(const std::string& name, const std::string& from) {
  Session(postgres().socket_url())
      .ask("CREATE DATABASE " + name + " TEMPLATE " + from + " STRATEGY file_copy");
  return postgres().socket_url(name);
}

void Lab::declare(Broker& broker, const std::string& name) const {
  broker
      .declare({.exchanges = {{.name = name}},
                .queues = {{.name = name}},
                .bindings = {{.exchange = name, .pattern = "#", .queue = name}}},
               soon())
      .value();
}

}  // namespace baton::bench
