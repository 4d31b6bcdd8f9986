#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/clock.h"
#include "observe/log.h"

namespace baton::gateway {

struct Options {
  enum class Service { signals, orchestrator } service = Service::signals;
  std::string address;
  std::uint16_t port = 0;
  std::string store;
  std::string objects;
  std::string owner;
  Millis ttl{0};
  Millis wait{0};
  Millis requeue{0};
  Millis keep{0};
  Millis grace{0};
  std::size_t workers = 0;
  std::size_t max_connections = 0;
  std::size_t max_body = 0;  // bytes
  std::size_t max_pending = 0;
  std::string token_file;
  observe::LogFormat log_format = observe::LogFormat::json;
  observe::LogLevel log_level = observe::LogLevel::info;
};

struct Parsed {
  Options options;
  std::string help;   // to be printed instead of doing anything
  std::string wrong;  // what is wrong with the command line
};

[[nodiscard]] Parsed parse_command_line(const std::vector<std::string>& words);

}  // namespace baton::gateway
