#pragma once

#include <string>
#include <vector>

#include "baton/clock.h"
#include "observe/log.h"

namespace baton::documents {

// What a service can be told: options.h reads it from flags, environment and a file.
struct Settings {
  std::string service;   // validation
  std::string instance;  // who this replica is, for people; empty: HOST:PID
  std::string database;  // sqlite:PATH or postgres://…
  std::string broker;    // embedded:PATH or rabbitmq://…
  std::string locks;     // empty: in the database, or in a file beside it if that is SQLite
  std::string listen;    // IP:PORT
  std::string run_file;  // where to write pid and URL once it serves; empty: nowhere
  std::string spool;     // notification: the directory that messages are sent to

  Millis lock_ttl{10'000};
  Millis grace{10'000};
  Millis max_lag{300'000};  // not ready when an event has waited for longer
  std::vector<Millis> retry_delays;
  Millis handler_timeout{30'000};
  bool allow_simulation = false;

  observe::LogFormat log_format = observe::LogFormat::json;
  observe::LogLevel log_level = observe::LogLevel::info;
};

}  // namespace baton::documents
