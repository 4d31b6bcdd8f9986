#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/result.h"
#include "http_client/http_client.h"

namespace baton::store::etcd {

// The parts of a store URL.
struct Settings {
  std::vector<std::string> endpoints;  // http://host:port
  std::string user;
  std::string password;
  std::string prefix = "baton";
  http_client::TlsSettings tls;
  Millis apply_limit{5000};
  std::string location;  // the URL without its password
};

[[nodiscard]] Result<Settings> parse_settings(std::string_view url);

}  // namespace baton::store::etcd
