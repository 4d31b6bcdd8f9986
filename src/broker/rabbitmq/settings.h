#pragma once

#include <string>
#include <string_view>

#include "baton/clock.h"
#include "baton/result.h"
#include "tls/tls.h"

namespace baton::broker::rabbitmq {

// The parts of a broker URL: see docs/rabbitmq.md.
struct Settings {
  std::string host = "127.0.0.1";
  int port = 5672;
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";
  bool uses_tls = false;  // rabbitmqs:
  TlsSettings tls;
  Millis heartbeat{30'000};  // whole seconds; who says nothing for twice as long is gone
  std::string location;      // the URL without its password
};

[[nodiscard]] BATON_EXPORT Result<Settings> parse_settings(std::string_view url);

}  // namespace baton::broker::rabbitmq
