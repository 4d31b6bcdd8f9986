#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "baton/clock.h"
#include "baton/result.h"
#include "tls/tls.h"

namespace baton::store::redis {

// A server of a cluster, or the one that the URL names.
struct Endpoint {
  std::string host;  // or the path of a socket, with port 0
  int port = 0;
  auto operator<=>(const Endpoint&) const = default;
};

// The parts of a store URL: see docs/stores/redis.md.
struct Settings {
  Endpoint node;
  std::string user;
  std::string password;
  bool authenticates = false;
  int database = 0;
  bool uses_tls = false;  // rediss:
  TlsSettings tls;
  std::string prefix = "baton";
  Millis apply_limit{5000};  // apply_timeout
  int wait_replicas = 0;
  Millis wait_timeout{500};
  std::string location;  // the URL without its password

  // The server refuses what it reads later than this, so that nothing happens after the client has
  // given up.
  [[nodiscard]] Millis effect_limit() const { return apply_limit * 4 / 5; }
};

[[nodiscard]] BATON_EXPORT Result<Settings> parse_settings(std::string_view url);

// One line, without the password.
[[nodiscard]] BATON_EXPORT std::string scrub(std::string_view text, const Settings& settings);

}  // namespace baton::store::redis
